"""The no-op ClientApp in fedloom's resident client: `python resident.py HOST:PORT [CA KEY]`."""

import sys
import threading
from pathlib import Path

from client.node.failures import Server
from client.node.resident import leave_on_signals, run_resident
from deploy.keys.nodes import load_private_key
from studies.speed.noop_app.client_app import app

if __name__ == "__main__":
    address, *proof = sys.argv[1:]
    server = (
        Server(address, Path(proof[0]).read_bytes(), load_private_key(Path(proof[1]))) if proof else Server(address)
    )
    stop = threading.Event()
    leave_on_signals(stop)
    run_resident(app, server, stop=stop, on_event=print)
