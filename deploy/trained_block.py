"""Replies of a block of clients, as bytes from one process to another."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from client.training.failures import DivergedError
from common.arrays import Arrays, Floats, add_prefix, group
from common.errors import FedloomError
from common.reply_sums import BlockReply, ClientBlock, Folded
from common.wire.messages import TrainReply


@dataclass(frozen=True)
class TrainedBlock:
    """Replies of a block.

    Args:
        replies: Reply or error of each client.
        sizes: Bytes of the arrays that each reply would have in a message.
        lengths: Kind -> length of each client's reply, (K,).
    """

    replies: list[TrainReply | FedloomError]
    sizes: list[int]
    lengths: dict[str, Floats]

    def to_bytes(self) -> bytes:
        """Return the block in the form that `from_bytes` reads."""
        rows = [_describe(reply) for reply in self.replies]
        arrays: Arrays = {"sizes": np.array(self.sizes), **add_prefix("lengths", self.lengths)}
        about: dict[str, Any] = {"rows": rows}
        for k, reply in enumerate(self.replies):
            if isinstance(reply, BlockReply):
                arrays |= {} if "block" in about else add_prefix("sums", reply.block.sums.to_arrays())
                about["block"] = {"number": reply.block.number, "clients": reply.block.clients}
            elif isinstance(reply, TrainReply):
                arrays |= add_prefix(f"{k}/update", reply.update) | add_prefix(f"{k}/gradient", reply.gradient)
        return save({n: np.ascontiguousarray(a) for n, a in arrays.items()}, {"about": json.dumps(about)})

    @staticmethod
    def from_bytes(content: bytes) -> "TrainedBlock":
        """Return the block; inverse of `to_bytes`."""
        about = json.loads(json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]["about"])
        arrays = load(content)
        lengths, found = group("lengths", arrays), about.get("block", {"number": 0, "clients": ()})
        block = ClientBlock(found["number"], tuple(found["clients"]), Folded.from_arrays(group("sums", arrays)))
        replies = [_read(row, k, arrays, block, lengths) for k, row in enumerate(about["rows"])]
        return TrainedBlock(replies, arrays["sizes"].tolist(), lengths)


def _describe(reply: TrainReply | FedloomError) -> dict[str, Any]:
    if isinstance(reply, FedloomError):
        return {}
    numbers = {"round": reply.round, "loss": reply.loss, "examples": reply.examples, "steps": reply.steps}
    return {**numbers, "alone": not isinstance(reply, BlockReply)}


def _read(
    row: dict[str, Any], k: int, arrays: Arrays, block: ClientBlock, lengths: dict[str, Floats]
) -> TrainReply | FedloomError:
    if not row:
        return DivergedError()
    if row.pop("alone"):
        return TrainReply(update=group(f"{k}/update", arrays), gradient=group(f"{k}/gradient", arrays), **row)
    own = {kind: float(length[k]) for kind, length in lengths.items()}
    return BlockReply(update={}, gradient={}, block=block, lengths=own, **row)
