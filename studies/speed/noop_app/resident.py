"""The no-op ClientApp in resident clients, a thread each: `python resident.py HOST:PORT [CA KEY ...]`."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from client.node.failures import Server
from client.node.resident import leave_on_signals, run_resident
from deploy.keys.nodes import load_private_key
from studies.speed.noop_app.client_app import app

if __name__ == "__main__":
    address, *proof = sys.argv[1:]
    servers = [Server(address)]
    if proof:
        ca, *keys = map(Path, proof)
        servers = [Server(address, ca.read_bytes(), load_private_key(key)) for key in keys]
    stop = threading.Event()
    leave_on_signals(stop)
    first, *others = servers
    with ThreadPoolExecutor(len(servers)) as threads:
        for server in others:
            threads.submit(run_resident, app, server, stop=stop, on_event=print)
        run_resident(app, first, stop=stop, on_event=print)  # signals interrupt the main thread alone
