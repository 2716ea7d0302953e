"""`fedloom join` of a liar with a valid key, each of whose training replies has further megabytes."""

import sys
from typing import Any

from flwr.app import ConfigRecord, Message, RecordDict

from client.node import stream
from deploy.cli.app import app

MEGABYTES = int(sys.argv.pop(1))

module: Any = stream
pack = module.pack_reply


def pack_more(reply: Message) -> Any:
    """Pack a reply, a training reply with a further record."""
    if reply.has_content() and reply.metadata.message_type.startswith("train"):
        more = ConfigRecord({"blob": bytes(MEGABYTES * 2**20)})
        reply.__dict__["_content"] = RecordDict({**reply.content, "more": more})
    return pack(reply)


if __name__ == "__main__":
    module.pack_reply = pack_more
    app()
