"""ClientApp without work: its reply is one blob of the received size, like fedloom's messages.

Before that it loads what every client of fedloom loads (torch, PyTorch Geometric), unless `NOOP_LOADS` says `nothing`: a
stock SuperNode starts a process a message, and that is where most of such a process's time goes.
"""

import importlib
import os

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()

if os.environ.get("NOOP_LOADS", "fedloom") == "fedloom":
    importlib.import_module("client.app")


@app.train()
def train(message: Message, context: Context) -> Message:
    """Answer with the array plus one, so that no store can recognise it."""
    array = np.frombuffer(message.content.config_records["payload"]["array"], np.float32)  # type: ignore[arg-type]
    answer = array + np.float32(1 + context.node_id % 1000)
    return Message(RecordDict({"payload": ConfigRecord({"array": answer.tobytes()})}), reply_to=message)
