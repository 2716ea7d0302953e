"""Replies of a block of clients, as bytes from one process to another."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
        sums: Sum of the replies, or of those of all blocks that share a sum with this last one; else empty.
    """

    replies: list[TrainReply | FedloomError]
    sizes: list[int]
    lengths: dict[str, Floats]
    sums: Folded = field(default_factory=Folded)

    def to_bytes(self) -> bytes:
        """Return the block in the form that `from_bytes` reads."""
        rows = [_describe(reply) for reply in self.replies]
        arrays: Arrays = {"sizes": np.array(self.sizes), **add_prefix("lengths", self.lengths)}
        arrays |= add_prefix("sums", self.sums.to_arrays())
        about: dict[str, Any] = {"rows": rows}
        for k, reply in enumerate(self.replies):
            if isinstance(reply, BlockReply):
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
        sums = Folded.from_arrays(group("sums", arrays))
        block = ClientBlock(found["number"], tuple(found["clients"]), sums)
        replies = [_read(row, k, arrays, block, lengths) for k, row in enumerate(about["rows"])]
        return TrainedBlock(replies, arrays["sizes"].tolist(), lengths, sums)


def share_sum(blocks: Sequence[TrainedBlock]) -> list[TrainedBlock]:
    """Return consecutive blocks whose replies are in the sum of the last one."""
    sums = blocks[-1].sums
    own = [{r.block: r.block for r in block.replies if isinstance(r, BlockReply)} for block in blocks]
    parts = [part for found in own for part in found]
    if not parts:
        return [*blocks]
    shared = ClientBlock(parts[0].number, tuple(client for part in parts for client in part.clients), sums)
    return [replace(block, replies=put_into(shared, block.replies), sums=sums) for block in blocks]


def put_into(block: ClientBlock, replies: Sequence[TrainReply | FedloomError]) -> list[TrainReply | FedloomError]:
    """Return the replies, with that block for those without arrays of their own."""
    return [replace(reply, block=block) if isinstance(reply, BlockReply) else reply for reply in replies]


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
