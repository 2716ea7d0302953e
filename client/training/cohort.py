"""One round of local training, for one client or a stacked cohort.

A real client calls `train` with one participant; the in-process simulation stacks a cohort. Participants are padded to the
largest, so the results of a cohort equal those of single participants up to float rounding.
"""

from collections.abc import Sequence

import torch

from client.stacked_tensors import Tensors, are_finite, row, select, stack
from client.state import ClientMemory
from client.tasks.learner import Learner
from client.trainers.registry import build_trainer
from client.trainers.spec import Cohort, Trainer
from client.training.client_state import HEAD, PERSONALIZED, load_group, load_moments, save_group, save_moments
from client.training.failures import DivergedError
from client.training.participant import Participant
from common.errors import FedloomError
from common.methods.spec import MethodOptions
from common.models import tensors
from common.tasks.registry import TASKS
from common.wire.messages import LOCAL, TrainReply, TrainRequest


def train(options: MethodOptions, participants: Sequence[Participant]) -> list[TrainReply | FedloomError]:
    """Train all participants for the same number of steps and store their client states.

    A participant with non-finite parameters gets an error in place of a reply; its client state does not change.
    """
    trainer, steps, phase = build_trainer(options), participants[0].steps, participants[0].request.phase
    names = set(participants[0].request.model)
    private = TASKS[participants[0].learner.task].private(names, options.capabilities())
    cohort = _build_cohort(trainer, participants, private)
    result = trainer.train_cohort(cohort)
    descent, personalized = result.descent, result.personalized

    updates = {n: cohort.start[n] - p for n, p in descent.params.items()}
    is_finite = are_finite(updates)
    is_usable = are_finite(personalized) if personalized else [True] * len(participants)
    replies: list[TrainReply | FedloomError] = []
    for k, participant in enumerate(participants):
        update, request = row(updates, k), participant.request
        local = trainer.conclude(row(cohort.control, k), update, row(descent.gradient, k), steps)
        shared = select(trainer.upload(update), names - private)
        gradient, loss = select(local.gradient, names - private), float(descent.loss[k])
        # noise on records covers a failure of the update, but not of the personalized model
        if not (is_finite[k] and (is_usable[k] or participant.noise is not None)):
            replies.append(DivergedError())
            continue
        if phase == LOCAL:
            head, before = select(row(descent.params, k), private), cohort.personalized[k]
            groups = {**local.state, **save_moments(options, k, cohort.moments, descent.moments)}
            groups |= save_group(HEAD, cohort.heads[k], head)
            groups |= save_group(PERSONALIZED, before, row(personalized, k) if is_usable[k] else before)
            state = ClientMemory(request.round, {g: t for g, t in groups.items() if t})
            participant.store.save(participant.run, state)
        replies.append(_build_reply(request, shared, gradient, loss, participant.learner.examples, steps))
    return replies


def zero_reply(options: MethodOptions, learner: Learner, request: TrainRequest, steps: int) -> TrainReply:
    """Return a reply of the right shapes whose numbers are all zero."""
    trainer, names = build_trainer(options), set(request.model)
    private = TASKS[learner.task].private(names, options.capabilities())
    zeros = {n: torch.zeros_like(t) for n, t in tensors(request.model).items()}
    gradient = trainer.conclude({}, zeros, zeros, steps).gradient
    update = select(trainer.upload(zeros), names - private)
    return _build_reply(request, update, select(gradient, names - private), 0.0, learner.examples, steps)


def _build_cohort(trainer: Trainer, participants: Sequence[Participant], private: frozenset[str]) -> Cohort:
    """Load the client states and stack the initial parameters."""
    pairs = [(p.store.load(p.run), p.request) for p in participants]
    heads = [load_group(state, request, HEAD) for state, request in pairs]
    start = stack([tensors(request.model) | head for (_, request), head in zip(pairs, heads, strict=True)])
    control = _stack_or_zeros([_settle(trainer, state, request) for state, request in pairs], start)
    personalized = [load_group(state, request, PERSONALIZED) for state, request in pairs]
    moments = load_moments(trainer.options, pairs, start)
    return Cohort(participants, start, moments, control, personalized, heads, private)


def _settle(trainer: Trainer, state: ClientMemory, request: TrainRequest) -> Tensors:
    """Return the control variate; a replayed round (`state.round == request.round`) is not aggregated yet."""
    is_counted = 0 < state.round == request.shared_round
    return trainer.settle(state.groups, is_counted, tensors(request.shared))


def _stack_or_zeros(controls: Sequence[Tensors], start: Tensors) -> Tensors:
    """Stack the control variates, zeros for participants without one; empty if none has one."""
    if not any(controls):
        return {}
    zeros = {n: torch.zeros_like(p[0]) for n, p in start.items()}
    return stack([c or zeros for c in controls])


def _build_reply(
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
