"""A ClientApp that does nothing: it answers with an array of the size it was sent, as one blob, like fedloom's messages."""

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Answer with the array plus one, so that no store can recognise it."""
    array = np.frombuffer(message.content.config_records["payload"]["array"], np.float32)  # type: ignore[arg-type]
    answer = array + np.float32(1 + context.node_id % 1000)
    return Message(RecordDict({"payload": ConfigRecord({"array": answer.tobytes()})}), reply_to=message)
