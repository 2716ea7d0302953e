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
                arrays |= {} if "block" in about else _arrays_of(reply.block.sums)
                about["block"] = _describe_block(reply.block)
            elif isinstance(reply, TrainReply):
                arrays |= add_prefix(f"{k}/update", reply.update) | add_prefix(f"{k}/gradient", reply.gradient)
        return save({n: np.ascontiguousarray(a) for n, a in arrays.items()}, {"about": json.dumps(about)})

    @staticmethod
    def from_bytes(content: bytes) -> "TrainedBlock":
        """Return the block; inverse of `to_bytes`."""
        about = json.loads(json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]["about"])
        arrays = load(content)
        lengths, block = group("lengths", arrays), _read_block(about.get("block"), arrays)
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


def _describe_block(block: ClientBlock) -> dict[str, Any]:
    sums = block.sums
    return {
        "number": block.number,
        "clients": block.clients,
        "weights": [*sums.weights.items()],
        "dtypes": {name: dtype.name for name, dtype in sums.dtypes.items()},
    }


def _arrays_of(sums: Folded) -> Arrays:
    arrays = add_prefix("gradient", sums.gradient)
    for kind, by_steps in (("updates", sums.updates), ("magnitudes", sums.magnitudes)):
        for steps, named in by_steps.items():
            arrays |= add_prefix(f"{kind}/{steps}", named)
    return arrays


def _read_block(about: dict[str, Any] | None, arrays: Arrays) -> ClientBlock:
    sums = Folded()
    if about is None:
        return ClientBlock(0, (), sums)
    sums.weights = dict(map(tuple, about["weights"]))
    sums.dtypes = {name: np.dtype(dtype) for name, dtype in about["dtypes"].items()}
    sums.gradient = group("gradient", arrays)
    for steps in sums.weights:
        sums.updates[steps] = group(f"updates/{steps}", arrays)
        if magnitudes := group(f"magnitudes/{steps}", arrays):
            sums.magnitudes[steps] = magnitudes
    return ClientBlock(about["number"], tuple(about["clients"]), sums)
