"""What a client carries from round to round: Adam's moments, its private head, a model of its own.

Each is kept as it was before and after the last round, so that a round which is asked for again starts where it did.
"""

from collections.abc import Sequence

import torch

from client.stacked_tensors import Tensors, row, stack
from client.state import ClientMemory
from client.trainers.optimizers import Moments, fresh_moments
from common.methods.spec import MethodOptions
from common.wire.messages import LOCAL, TrainRequest

HEAD, OWN = "head", "own"
"""Groups of a client's memory: its private head, and a model of its own."""


def load_group(memory: ClientMemory, request: TrainRequest, group: str) -> Tensors:
    """A group as this request finds it; empty before the first round."""
    return memory.groups.get(f"{group}.{_when(memory, request)}", {})


def save_group(group: str, before: Tensors, after: Tensors) -> dict[str, Tensors]:
    """A group as it is to be kept; nothing where there is nothing."""
    return {f"{group}.before": before, f"{group}.after": after} if after else {}


def carried_moments(
    algorithm: MethodOptions, memories: Sequence[ClientMemory], requests: Sequence[TrainRequest], start: Tensors
) -> Moments:
    """Moments to start from, stacked; fresh ones where the method keeps none."""
    fresh = fresh_moments(algorithm, start)
    if not _persistent(algorithm) or not any(m.round for m in memories):
        return fresh
    rows = []
    for k, (memory, request) in enumerate(zip(memories, requests, strict=True)):
        known = {group: load_group(memory, request, group) for group in ("first", "second", "count")}
        rows.append(known if known["count"] else _groups(fresh, k))
    first, second = stack([r["first"] for r in rows]), stack([r["second"] for r in rows])
    return Moments(torch.stack([r["count"]["count"] for r in rows]), first, second)


def kept_moments(algorithm: MethodOptions, k: int, before: Moments, after: Moments) -> dict[str, Tensors]:
    """Client k's moments, as they are to be kept."""
    if not _persistent(algorithm):
        return {}
    old, new = _groups(before, k), _groups(after, k)
    return {name: group for key in old for name, group in save_group(key, old[key], new[key]).items()}


def _when(memory: ClientMemory, request: TrainRequest) -> str:
    return "before" if memory.round == request.round and request.phase == LOCAL else "after"


def _groups(moments: Moments, k: int) -> dict[str, Tensors]:
    count = {"count": moments.count[k].clone()}
    return {"first": row(moments.first, k), "second": row(moments.second, k), "count": count}


def _persistent(algorithm: MethodOptions) -> bool:
    return algorithm.optimizer == "adam" and algorithm.moments == "persist"
