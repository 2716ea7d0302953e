"""The no-op ClientApp in fedloom's resident client: `python resident.py HOST:PORT [CA KEY]`.

With `NOOP_CALLS`, it appends its calls so far to that file at each reply: a line of JSON, kind of request -> number.
"""

import json
import os
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

from client.node.failures import Server
from client.node.flower import Channel
from client.node.resident import leave_on_signals, run_resident
from deploy.keys.nodes import load_private_key
from studies.speed.noop_app.client_app import app

CALLS, start = Counter[str](), Channel.start


def start_counted(channel: Channel, method: Any, request: Any, **options: Any) -> Any:
    """Start a call as `Channel.start` does, and count it."""
    CALLS[kind := type(request).__name__.removesuffix("Request")] += 1
    if kind == "PushMessages":
        with Path(os.environ["NOOP_CALLS"]).open("a") as file:
            file.write(json.dumps(CALLS) + "\n")
    return start(channel, method, request, **options)


if __name__ == "__main__":
    address, *proof = sys.argv[1:]
    server = (
        Server(address, Path(proof[0]).read_bytes(), load_private_key(Path(proof[1]))) if proof else Server(address)
    )
    stop = threading.Event()
    leave_on_signals(stop)
    with patch.object(Channel, "start", start_counted if "NOOP_CALLS" in os.environ else start):
        run_resident(app, server, stop=stop, on_event=print)
