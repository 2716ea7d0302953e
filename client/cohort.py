"""One round of local training for one client or for many at once.

A real client calls `train` with itself alone; the in-process simulation stacks a whole cohort. Clients are padded to the
largest of them, so a cohort's results equal lone clients' up to float rounding.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor
from torch.func import grad_and_value

from client.keeping import HEAD, OWN, carried, carried_moments, kept, kept_moments
from client.privacy.gradients import draws, private_gradient
from client.privacy.noise import Noise
from client.stacking import finite, row, some, stack
from client.state import Memory, Store
from client.trainers import build_trainer
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.local import Descent, GradientAndLoss, descend
from client.trainers.optimizers import Tensors, build_step, fresh_moments
from common.algorithms import Algorithm
from common.arrays import Arrays
from common.config import Task
from common.errors import FedloomError
from common.models import tensors
from common.models.heads import head_of, own_of
from common.wire.messages import LOCAL, TrainReply, TrainRequest


class Learner(Protocol):
    """What a task gives the trainers: a client's data as tensors and the objective on them."""

    task: Task

    examples: int
    """Records trained on."""

    size: int
    """Rows of one step, by which a simulation stacks like with like."""

    rows: int
    """Rows of a batch, one a record; 0 where records cannot be told apart in it."""

    shared: tuple[str, ...]
    """Tensors of a batch that are not one row a record."""

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
    noise: Noise | None = None
    """Of its local steps, under DP-SGD."""


def train(algorithm: Algorithm, members: Sequence[Member]) -> list[TrainReply | FedloomError]:
    """Train all members for the same number of steps and update their private memories.

    A member whose parameters are no longer finite yields an error in place of a reply, and its memory stays as it was.
    """
    trainer, steps, phase = build_trainer(algorithm), members[0].steps, members[0].request.phase
    requests, names = [m.request for m in members], set(members[0].request.model)
    task = members[0].learner.task
    private = set(trainer.private(names, head_of(task, names))) | own_of(task, names)
    memories = [m.store.load(m.run) for m in members]
    controls = [_settle(trainer, memory, request) for memory, request in zip(memories, requests, strict=True)]
    heads = [carried(memory, request, HEAD) for memory, request in zip(memories, requests, strict=True)]
    start = stack([tensors(request.model) | head for request, head in zip(requests, heads, strict=True)])
    control, before = _stack_or_zeros(controls, start), carried_moments(algorithm, memories, requests, start)
    batches = [m.learner.batch(m.request) for m in members]
    descend_from = partial(
        descend,
        _gradient_and_loss(members[0]),
        batch=stack(batches),
        noise=stack(
            [_drawn(m, row(start, k), batch) for k, (m, batch) in enumerate(zip(members, batches, strict=True))]
        ),
        steps=steps,
        step=build_step(algorithm),
        clip_norm=algorithm.clip_norm,
        frozen=lambda t: trainer.frozen(t, phase, private, names),
    )
    descent = descend_from(start, moments=before, correct=lambda g, params: trainer.correct(g, params, start, control))
    own_before = [carried(memory, request, OWN) for memory, request in zip(memories, requests, strict=True)]
    own_after = _own_models(trainer, own_before, start, descent.params, descend_from)

    updates = {n: start[n] - p for n, p in descent.params.items()}
    moved = updates | {f"{OWN}.{n}": t for n, t in own_after.items()}
    replies: list[TrainReply | FedloomError] = []
    for k, (member, usable) in enumerate(zip(members, finite(moved), strict=True)):
        if not usable:
            replies.append(FedloomError("training diverged (NaN or infinite parameters); lower lr, or set clip-norm"))
            continue
        update = row(updates, k)
        result = trainer.conclude(row(control, k), update, row(descent.gradient, k), steps)
        if phase == LOCAL:
            groups = {**result.kept, **kept_moments(algorithm, k, before, descent.moments)}
            groups |= kept(HEAD, heads[k], some(row(descent.params, k), private))
            groups |= kept(OWN, own_before[k], row(own_after, k))
            member.store.save(member.run, Memory(member.request.round, {g: t for g, t in groups.items() if t}))
        shared = some(update, names - private)
        replies.append(_reply(member, shared, result.gradient, float(descent.loss[k]), steps))
    return replies


def evaluated(algorithm: Algorithm, model: Arrays, memory: Memory) -> dict[str, Arrays]:
    """The models a client measures, by the prefix of their metrics: the one it would use first, then the one it shares."""
    trainer = build_trainer(algorithm)
    head = {n: t.numpy() for n, t in memory.groups.get(f"{HEAD}.after", {}).items()}
    shared = {**model, **head}
    own = {n: t.numpy() for n, t in memory.groups.get(f"{OWN}.after", {}).items()}
    if trainer.own == "none":
        return {"": shared}
    return {"": own or shared, "cluster_" if trainer.own == "trained" else "global_": shared}


def generator(member: Member) -> torch.Generator:
    """The client's own source of randomness in that exchange: the same in a simulation as across machines."""
    request = member.request
    text = f"{member.seed}|{request.round}|{member.client}" + ("" if request.phase == LOCAL else f"|{request.phase}")
    return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1)


def _gradient_and_loss(member: Member) -> GradientAndLoss:
    """Of one client: plain, or under DP-SGD of clipped records with noise."""
    learner = member.learner
    return private_gradient(learner.loss, learner.shared) if member.noise else grad_and_value(learner.loss)


def _drawn(member: Member, params: Tensors, batch: Tensors) -> Tensors:
    """All that is random in a client's steps."""
    masks, noise = member.learner.noise(member.steps, generator(member)), member.noise
    if noise is None:
        return masks
    drawn = draws(
        params,
        member.learner.rows,
        member.learner.examples,
        member.steps,
        clip=noise.clip,
        multiplier=noise.multiplier,
        sample=noise.sample,
        generator=noise.generator(),
    )
    return {**masks, **drawn}


def _own_models(
    trainer: FedAvgTrainer,
    before: Sequence[Tensors],
    start: Tensors,
    trained: Tensors,
    descend_from: Callable[..., Descent],
) -> Tensors:
    """Each member's own model after the round, stacked; empty where the method leaves it none."""
    if trainer.own != "beside":
        return trained if trainer.own == "trained" else {}
    own = stack([one or row(start, k) for k, one in enumerate(before)])
    moments = fresh_moments(trainer.options, own)
    descent = descend_from(own, moments=moments, correct=lambda g, params: trainer.pull(g, params, start))
    return descent.params


def _settle(trainer: FedAvgTrainer, memory: Memory, request: TrainRequest) -> Tensors:
    """A round that was replayed (`memory.round == request.round`) did not count yet, so its pending part is dropped."""
    counted = 0 < memory.round == request.shared_round
    return trainer.settle(memory.groups, counted, tensors(request.shared))


def _stack_or_zeros(controls: Sequence[Tensors], start: Tensors) -> Tensors:
    if not any(controls):
        return {}
    zeros = {n: torch.zeros_like(p[0]) for n, p in start.items()}
    return stack([c or zeros for c in controls])


def _reply(member: Member, update: Tensors, gradient: Tensors, loss: float, steps: int) -> TrainReply:
    return TrainReply(
        round=member.request.round,
        update={n: t.numpy() for n, t in update.items()},
        gradient={n: t.numpy() for n, t in gradient.items()},
        loss=loss,
        examples=member.learner.examples,
        steps=steps,
    )
