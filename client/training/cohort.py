"""One round of local training, for one client or a stacked cohort.

A real client calls `train` with one participant; the in-process simulation stacks a cohort. Participants are padded to the
largest, so the results of a cohort equal those of single participants up to float rounding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from client.stacked_tensors import Tensors, are_finite, at, select, to_arrays
from client.tasks.learner import Learner
from client.trainers.registry import build_trainer
from client.trainers.spec import Cohort, CohortResult, LocalResult, Trainer
from client.training.cohort_state import build_cohort, save_states
from client.training.failures import DivergedError
from client.training.participant import Participant
from client.training.sharing_cohort import build_sharing_cohort
from client.training.touched_rows import gather, gathered_rows, name_rows
from common.arrays import Arrays, Ints
from common.errors import FedloomError
from common.methods.spec import MethodOptions
from common.models import tensors
from common.tasks.registry import TASKS
from common.wire.messages import LOCAL, TrainReply, TrainRequest


@dataclass(frozen=True)
class TrainedCohort:
    """Result of a cohort's training, before its states are stored.

    Args:
        trainer: Trainer of the method.
        cohort: The cohort.
        result: Parameters and personalized models.
        local: Gradients to send, and groups of the method's state.
        update: Δ_k as sent, K × ….
        gradient: s_k as sent, K × ….
        is_finite: True for each participant whose update is finite.
    """

    trainer: Trainer
    cohort: Cohort
    result: CohortResult
    local: LocalResult
    update: Tensors
    gradient: Tensors
    is_finite: list[bool]


@dataclass(frozen=True)
class StackedReplies:
    """Replies of a cohort.

    Args:
        replies: Reply of each participant, or the error that it gets in place of one.
        update: Δ_k as sent, K × …; the replies hold views of it.
        gradient: s_k as sent, K × …; the replies hold views of it.
        rows: Table that replies hold as gathered rows -> number of each client's rows, (K,).
    """

    replies: list[TrainReply | FedloomError]
    update: Tensors
    gradient: Tensors
    rows: Mapping[str, Ints] = field(default_factory=dict)


def train(options: MethodOptions, participants: Sequence[Participant]) -> list[TrainReply | FedloomError]:
    """Train all participants as `train_stacked` does, and return their replies."""
    return train_stacked(options, participants).replies


def train_stacked(options: MethodOptions, participants: Sequence[Participant]) -> StackedReplies:
    """Train all participants for the same number of steps and store their client states.

    A participant with non-finite parameters gets an error in place of a reply; its client state does not change.
    """
    trained = descend_together(options, participants)
    personalized, is_finite = trained.result.personalized, trained.is_finite
    is_usable = are_finite(personalized) if personalized else [True] * len(participants)
    # noise on records covers a failure of the update, but not of the personalized model
    counted = [k for k, p in enumerate(participants) if is_finite[k] and (is_usable[k] or p.noise is not None)]
    if participants[0].request.phase == LOCAL:
        save_states(options, trained.cohort, trained.result, trained.local.state, counted, is_usable)
    tables = [gathered_rows(p) for p in trained.cohort.participants]
    rows = {table: np.array([len(ids[table]) for ids in tables]) for table in tables[0]}
    return StackedReplies(build_replies(trained, counted), trained.update, trained.gradient, rows)


def descend_together(
    options: MethodOptions, participants: Sequence[Participant], *, with_all: bool = False
) -> TrainedCohort:
    """Train all participants for the same number of steps; `with_all`: see `build_cohort`.

    If all clients train, those that can share the rows that they do not touch.
    """
    trainer, steps = build_trainer(options), participants[0].steps
    participants = gather(participants)
    names = set(participants[0].request.model)
    private = TASKS[participants[0].learner.task].private(names, options.capabilities())
    sharing = build_sharing_cohort(trainer, participants, private) if with_all else None
    cohort = sharing or build_cohort(trainer, participants, private, with_all=with_all)
    result = trainer.train_cohort(cohort)
    updates = {n: cohort.start[n] - p for n, p in result.descent.params.items()}
    local = trainer.conclude(cohort.control, updates, result.descent.gradient, steps)
    updates, gradient = (cohort.own.lengthen(t) if cohort.own else t for t in (updates, local.gradient))
    update, gradient = select(trainer.upload(updates), names - private), select(gradient, names - private)
    return TrainedCohort(trainer, cohort, result, local, update, gradient, are_finite(updates))


def build_replies(trained: TrainedCohort, counted: Sequence[int]) -> list[TrainReply | FedloomError]:
    """Return the reply of each counted participant, as views, and an error for the others."""
    update, gradient, losses = (
        to_arrays(trained.update),
        to_arrays(trained.gradient),
        trained.result.descent.loss.tolist(),
    )
    return [
        build_reply(p, at(update, k), at(gradient, k), losses[k]) if k in counted else DivergedError()
        for k, p in enumerate(trained.cohort.participants)
    ]


def zero_reply(options: MethodOptions, learner: Learner, request: TrainRequest, steps: int) -> TrainReply:
    """Return a reply of the right shapes whose numbers are all zero."""
    trainer, names = build_trainer(options), set(request.model)
    private = TASKS[learner.task].private(names, options.capabilities())
    zeros = {n: torch.zeros_like(t) for n, t in tensors(request.model).items()}
    gradient = trainer.conclude({}, zeros, zeros, steps).gradient
    update = to_arrays(select(trainer.upload(zeros), names - private))
    return _build_reply(request, update, to_arrays(select(gradient, names - private)), 0.0, learner.examples, steps)


def build_reply(participant: Participant, update: Arrays, gradient: Arrays, loss: float) -> TrainReply:
    """Return the reply of a participant."""
    request, examples, rows = participant.request, participant.learner.examples, gathered_rows(participant)
    named = name_rows(update, rows)
    return _build_reply(request, named, name_rows(gradient, rows), loss, examples, participant.steps)


def _build_reply(
    request: TrainRequest, update: Arrays, gradient: Arrays, loss: float, examples: int, steps: int
) -> TrainReply:
    return TrainReply(
        round=request.round,
        update=update,
        gradient=gradient,
        loss=loss,
        examples=examples,
        steps=steps,
    )
