"""Load and store client state: optimizer moments, private head, personalized model.

Each is stored as it was before and after the last round, so that a repeated round starts from the same state.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from client.privacy.transforms import Released
from client.stacked_tensors import Tensors, row, stack
from client.state import ClientMemory
from client.trainers.optimizers import Moments, fresh_moments
from client.trainers.spec import Trainer
from client.training.participant import Participant
from common.arrays import group
from common.methods.spec import MethodOptions
from common.wire.messages import LOCAL, TrainRequest

HEAD, OWN = "head", "own"
"""Groups of client state: private head, and personalized model."""


@dataclass(frozen=True)
class KeepReleased:
    """Encode step: store the released values in the client state, if the method needs them."""

    trainer: Trainer
    participant: Participant

    def __call__(self, released: Released) -> Released:
        """Store the values of this round; return them unchanged."""
        participant = self.participant
        update, gradient = group("update", released.arrays), group("gradient", released.arrays)
        groups = self.trainer.released(update, gradient, participant.steps)
        if groups and (memory := participant.store.load(participant.run)).round == participant.request.round:
            merged = {key: {**memory.groups.get(key, {}), **tensors} for key, tensors in groups.items()}
            participant.store.save(participant.run, replace(memory, groups={**memory.groups, **merged}))
        return released


def load_group(memory: ClientMemory, request: TrainRequest, group: str) -> Tensors:
    """Return a group at the start of this request; empty before the first round."""
    return memory.groups.get(f"{group}.{_when(memory, request)}", {})


def save_group(group: str, before: Tensors, after: Tensors) -> dict[str, Tensors]:
    """Return a group to store; empty if the state after the round is empty."""
    return {f"{group}.before": before, f"{group}.after": after} if after else {}


def load_moments(
    algorithm: MethodOptions, memories: Sequence[ClientMemory], requests: Sequence[TrainRequest], start: Tensors
) -> Moments:
    """Return initial moments, stacked; new ones if the method does not persist them."""
    fresh = fresh_moments(algorithm, start)
    if not _persistent(algorithm) or not any(m.round for m in memories):
        return fresh
    rows = []
    for k, (memory, request) in enumerate(zip(memories, requests, strict=True)):
        stored = {group: load_group(memory, request, group) for group in ("first", "second", "count")}
        rows.append(stored if stored["count"] else _groups(fresh, k))
    first, second = stack([r["first"] for r in rows]), stack([r["second"] for r in rows])
    return Moments(torch.stack([r["count"]["count"] for r in rows]), first, second)


def save_moments(algorithm: MethodOptions, k: int, before: Moments, after: Moments) -> dict[str, Tensors]:
    """Return the moments of client k to store."""
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
