"""One round of local training for one client or for many at once.

A real client calls `train` with itself alone; the in-process simulation stacks a whole cohort. Clients are padded to the
largest of them, so a cohort's results equal lone clients' up to float rounding.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from client.state import Memory, Store
from client.trainers import build_trainer
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.local import descend
from client.trainers.optimizers import Moments, Tensors, build_step, fresh_moments
from common.algorithms import Algorithm
from common.errors import FedloomError
from common.models import tensors
from common.wire.messages import TrainReply, TrainRequest


class Learner(Protocol):
    """What a task gives the trainers: a client's data as tensors and the objective on them."""

    examples: int
    """Records trained on."""

    size: int
    """Rows of one step, by which a simulation stacks like with like."""

    def batch(self, request: TrainRequest) -> Tensors:
        """All training data, without a client dimension."""

    def noise(self, steps: int, generator: torch.Generator) -> Tensors:
        """Dropout masks for `steps` steps, steps × …."""

    def loss(self, params: Tensors, batch: Tensors, noise: Tensors) -> Tensor:
        """L_k, a scalar; pure."""


@dataclass(frozen=True)
class Member:
    """One client of a cohort, ready to train."""

    client: str
    run: str
    seed: int
    learner: Learner
    store: Store
    request: TrainRequest
    steps: int


def train(algorithm: Algorithm, members: Sequence[Member]) -> list[TrainReply | FedloomError]:
    """Train all members from the same model for the same number of steps and update their private memories.

    A member whose parameters are no longer finite yields an error in place of a reply, and its memory stays as it was.
    """
    trainer, steps = build_trainer(algorithm), members[0].steps
    memories = [m.store.load(m.run) for m in members]
    controls = [_settle(trainer, memory, m.request) for memory, m in zip(memories, members, strict=True)]
    start = _repeat(tensors(members[0].request.model), len(members))
    control, moments = _stack_or_zeros(controls, start), _moments(algorithm, memories, members, start)
    descent = descend(
        members[0].learner.loss,
        start,
        stack([m.learner.batch(m.request) for m in members]),
        stack([m.learner.noise(steps, generator(m.seed, m.request.round, m.client)) for m in members]),
        steps=steps,
        step=build_step(algorithm),
        moments=moments,
        correct=lambda gradient, params: trainer.correct(gradient, params, start, control),
        clip_norm=algorithm.clip_norm,
    )
    updates = {n: start[n] - p for n, p in descent.params.items()}
    replies: list[TrainReply | FedloomError] = []
    for k, (member, finite) in enumerate(zip(members, _finite(updates), strict=True)):
        if not finite:
            replies.append(FedloomError("training diverged (NaN or infinite parameters); lower lr, or set clip-norm"))
            continue
        update = _row(updates, k)
        result = trainer.conclude(_row(control, k), update, _row(descent.gradient, k), steps)
        kept = {**result.kept, **_kept_moments(algorithm, k, before=moments, after=descent.moments)}
        member.store.save(member.run, Memory(member.request.round, {g: t for g, t in kept.items() if t}))
        replies.append(_reply(member, update, result.gradient, float(descent.loss[k]), steps))
    return replies


def generator(seed: int, round_number: int, client: str) -> torch.Generator:
    """The client's own source of randomness in that round: the same in a simulation as across machines."""
    digest = hashlib.sha256(f"{seed}|{round_number}|{client}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8]) >> 1)


def stack(members: Sequence[Tensors]) -> Tensors:
    """Stack along a new dimension 0, zero-padding every tensor to the largest of its name."""
    return {name: _stack_padded([m[name] for m in members]) for name in members[0]}


def _settle(trainer: FedAvgTrainer, memory: Memory, request: TrainRequest) -> Tensors:
    """A round that was replayed (`memory.round == request.round`) did not count yet, so its pending part is dropped."""
    counted = 0 < memory.round == request.shared_round
    return trainer.settle(memory.groups, counted, tensors(request.shared))


def _stack_or_zeros(controls: Sequence[Tensors], start: Tensors) -> Tensors:
    if not any(controls):
        return {}
    zeros = {n: torch.zeros_like(p[0]) for n, p in start.items()}
    return stack([c or zeros for c in controls])


def _moments(algorithm: Algorithm, memories: Sequence[Memory], members: Sequence[Member], start: Tensors) -> Moments:
    """Moments to start from; a round that is asked for again starts from those it started from before."""
    fresh = fresh_moments(algorithm, start)
    if not _persistent(algorithm) or not any(m.round for m in memories):
        return fresh
    rows = []
    for k, (memory, member) in enumerate(zip(memories, members, strict=True)):
        when = "before" if memory.round == member.request.round else "after"
        known = {group: memory.groups.get(f"{group}.{when}", {}) for group in ("first", "second", "count")}
        rows.append(known if known["count"] else _groups(fresh, k))
    first, second = stack([r["first"] for r in rows]), stack([r["second"] for r in rows])
    return Moments(torch.stack([r["count"]["count"] for r in rows]), first, second)


def _kept_moments(algorithm: Algorithm, k: int, **moments: Moments) -> dict[str, Tensors]:
    """Client k's moments before and after the round, by group."""
    if not _persistent(algorithm):
        return {}
    return {f"{group}.{when}": t for when, m in moments.items() for group, t in _groups(m, k).items()}


def _groups(moments: Moments, k: int) -> dict[str, Tensors]:
    count = {"count": moments.count[k].clone()}
    return {"first": _row(moments.first, k), "second": _row(moments.second, k), "count": count}


def _persistent(algorithm: Algorithm) -> bool:
    return algorithm.optimizer == "adam" and algorithm.moments == "persist"


def _repeat(model: Tensors, clients: int) -> Tensors:
    return {n: p.unsqueeze(0).expand(clients, *p.shape).contiguous() for n, p in model.items()}


def _row(stacked: Tensors, k: int) -> Tensors:
    """Client k's part, copied out so that a kept row does not hold the whole cohort in memory."""
    return {n: t[k].clone() for n, t in stacked.items()}


def _stack_padded(members: Sequence[Tensor]) -> Tensor:
    shapes = {m.shape for m in members}
    if len(shapes) == 1:
        return torch.stack(list(members))
    size = [max(lengths) for lengths in zip(*shapes, strict=True)]
    stacked = members[0].new_zeros((len(members), *size))
    for k, member in enumerate(members):
        stacked[k][tuple(slice(0, length) for length in member.shape)] = member
    return stacked


def _finite(updates: Tensors) -> list[bool]:
    """Which clients' updates hold neither NaN nor infinity."""
    finite: list[bool] = torch.stack([u.isfinite().flatten(1).all(1) for u in updates.values()]).all(0).tolist()
    return finite


def _reply(member: Member, update: Tensors, gradient: Tensors, loss: float, steps: int) -> TrainReply:
    return TrainReply(
        round=member.request.round,
        update={n: t.numpy() for n, t in update.items()},
        gradient={n: t.numpy() for n, t in gradient.items()},
        loss=loss,
        examples=member.learner.examples,
        steps=steps,
    )
