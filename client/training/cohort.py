"""One round of local training for one client or for many at once.

A real client calls `train` with itself alone; the in-process simulation stacks a whole cohort. Clients are padded to the
largest of them, so a cohort's results equal lone clients' up to float rounding.
"""

from collections.abc import Sequence

import torch

from client.stacked_tensors import Tensors, are_finite, row, select, stack
from client.state import ClientMemory
from client.tasks.learner import Learner
from client.trainers.registry import build_trainer
from client.trainers.spec import Cohort, Trainer
from client.training.client_state import HEAD, OWN, load_group, load_moments, save_group, save_moments
from client.training.failures import DivergedError
from client.training.participant import Participant
from common.arrays import Arrays
from common.errors import FedloomError
from common.methods.spec import MethodOptions
from common.models import tensors
from common.tasks.registry import TASKS
from common.wire.messages import LOCAL, TrainReply, TrainRequest


def train(algorithm: MethodOptions, members: Sequence[Participant]) -> list[TrainReply | FedloomError]:
    """Train all members for the same number of steps and update their private memories.

    A member whose parameters are no longer finite yields an error in place of a reply, and its memory stays as it was.
    """
    trainer, steps, phase = build_trainer(algorithm), members[0].steps, members[0].request.phase
    requests, names = [m.request for m in members], set(members[0].request.model)
    private = TASKS[members[0].learner.task].private(names, algorithm.capabilities())
    memories = [m.store.load(m.run) for m in members]
    controls = [_settle(trainer, memory, request) for memory, request in zip(memories, requests, strict=True)]
    heads = [load_group(memory, request, HEAD) for memory, request in zip(memories, requests, strict=True)]
    start = stack([tensors(request.model) | head for request, head in zip(requests, heads, strict=True)])
    control, before = _stack_or_zeros(controls, start), load_moments(algorithm, memories, requests, start)
    own_before = [load_group(memory, request, OWN) for memory, request in zip(memories, requests, strict=True)]
    result = trainer.train_cohort(Cohort(members, start, before, control, own_before, heads, private))
    descent, own_after = result.descent, result.own

    updates = {n: start[n] - p for n, p in descent.params.items()}
    moved, sound = are_finite(updates), are_finite(own_after) if own_after else [True] * len(members)
    replies: list[TrainReply | FedloomError] = []
    for k, member in enumerate(members):
        # under noise on records the update is paid for, and what becomes of the own model is not
        usable = moved[k] and (sound[k] or member.noise is not None)
        update = row(updates, k)
        local = trainer.conclude(row(control, k), update, row(descent.gradient, k), steps)
        shared = select(trainer.upload(update), names - private)
        gradient, loss = select(local.gradient, names - private), float(descent.loss[k])
        reply = _reply(member.request, shared, gradient, loss, member.learner.examples, steps)
        if usable and phase == LOCAL:
            groups = {**local.state, **save_moments(algorithm, k, before, descent.moments)}
            groups |= save_group(HEAD, heads[k], select(row(descent.params, k), private))
            groups |= save_group(OWN, own_before[k], row(own_after, k) if sound[k] else own_before[k])
            member.store.save(member.run, ClientMemory(member.request.round, {g: t for g, t in groups.items() if t}))
        replies.append(reply if usable else DivergedError())
    return replies


def zero_reply(algorithm: MethodOptions, learner: Learner, request: TrainRequest, steps: int) -> TrainReply:
    """A reply of the shape that is due, all of whose numbers are zero."""
    trainer, names = build_trainer(algorithm), set(request.model)
    private = TASKS[learner.task].private(names, algorithm.capabilities())
    zeros = {n: torch.zeros_like(t) for n, t in tensors(request.model).items()}
    gradient = trainer.conclude({}, zeros, zeros, steps).gradient
    update = select(trainer.upload(zeros), names - private)
    return _reply(request, update, select(gradient, names - private), 0.0, learner.examples, steps)


def evaluated(algorithm: MethodOptions, model: Arrays, memory: ClientMemory) -> dict[str, Arrays]:
    """The models a client measures, by the prefix of their metrics: the one it would use first, then the one it shares."""
    trainer = build_trainer(algorithm)
    head = {n: t.numpy() for n, t in memory.groups.get(f"{HEAD}.after", {}).items()}
    shared = {**model, **head}
    own = {n: t.numpy() for n, t in memory.groups.get(f"{OWN}.after", {}).items()}
    if algorithm.capabilities().own_model == "none":
        return {"": shared}
    return {"": own or shared, trainer.shared_as: shared}


def _settle(trainer: Trainer, memory: ClientMemory, request: TrainRequest) -> Tensors:
    """A round that was replayed (`memory.round == request.round`) did not count yet, so its pending part is dropped."""
    counted = 0 < memory.round == request.shared_round
    return trainer.settle(memory.groups, counted, tensors(request.shared))


def _stack_or_zeros(controls: Sequence[Tensors], start: Tensors) -> Tensors:
    if not any(controls):
        return {}
    zeros = {n: torch.zeros_like(p[0]) for n, p in start.items()}
    return stack([c or zeros for c in controls])


def _reply(
    request: TrainRequest, update: Tensors, gradient: Tensors, loss: float, examples: int, steps: int
) -> TrainReply:
    return TrainReply(
        round=request.round,
        update={n: t.numpy() for n, t in update.items()},
        gradient={n: t.numpy() for n, t in gradient.items()},
        loss=loss,
        examples=examples,
        steps=steps,
    )
