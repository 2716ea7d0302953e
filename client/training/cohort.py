"""One round of local training, for one client or a stacked cohort.

A real client calls `train` with one participant; the in-process simulation stacks a cohort. Participants are padded to the
largest, so the results of a cohort equal those of single participants up to float rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from client.stacked_tensors import Tensors, are_finite, at, select, to_arrays
from client.tasks.learner import Learner
from client.trainers.registry import build_trainer
from client.training.cohort_state import build_cohort, save_states
from client.training.failures import DivergedError
from client.training.participant import Participant
from common.arrays import Arrays
from common.errors import FedloomError
from common.methods.spec import MethodOptions
from common.models import tensors
from common.tasks.registry import TASKS
from common.wire.messages import LOCAL, TrainReply, TrainRequest


@dataclass(frozen=True)
class StackedReplies:
    """Replies of a cohort.

    Args:
        replies: Reply of each participant, or the error that it gets in place of one.
        update: Δ_k as sent, K × …; the replies hold views of it.
        gradient: s_k as sent, K × …; the replies hold views of it.
    """

    replies: list[TrainReply | FedloomError]
    update: Tensors
    gradient: Tensors


def train(options: MethodOptions, participants: Sequence[Participant]) -> list[TrainReply | FedloomError]:
    """Train all participants as `train_stacked` does, and return their replies."""
    return train_stacked(options, participants).replies


def train_stacked(options: MethodOptions, participants: Sequence[Participant]) -> StackedReplies:
    """Train all participants for the same number of steps and store their client states.

    A participant with non-finite parameters gets an error in place of a reply; its client state does not change.
    """
    trainer, steps, phase = build_trainer(options), participants[0].steps, participants[0].request.phase
    names = set(participants[0].request.model)
    private = TASKS[participants[0].learner.task].private(names, options.capabilities())
    cohort = build_cohort(trainer, participants, private)
    result = trainer.train_cohort(cohort)
    descent, personalized = result.descent, result.personalized

    updates = {n: cohort.start[n] - p for n, p in descent.params.items()}
    is_finite = are_finite(updates)
    is_usable = are_finite(personalized) if personalized else [True] * len(participants)
    local = trainer.conclude(cohort.control, updates, descent.gradient, steps)
    sent = StackedReplies([], select(trainer.upload(updates), names - private), select(local.gradient, names - private))
    update, gradient, losses = to_arrays(sent.update), to_arrays(sent.gradient), descent.loss.tolist()
    # noise on records covers a failure of the update, but not of the personalized model
    counted = [k for k, p in enumerate(participants) if is_finite[k] and (is_usable[k] or p.noise is not None)]
    if phase == LOCAL:
        save_states(options, cohort, result, local.state, counted, is_usable)
    for k, participant in enumerate(participants):
        request = participant.request
        if k not in counted:
            sent.replies.append(DivergedError())
            continue
        reply = _build_reply(request, at(update, k), at(gradient, k), losses[k], participant.learner.examples, steps)
        sent.replies.append(reply)
    return sent


def zero_reply(options: MethodOptions, learner: Learner, request: TrainRequest, steps: int) -> TrainReply:
    """Return a reply of the right shapes whose numbers are all zero."""
    trainer, names = build_trainer(options), set(request.model)
    private = TASKS[learner.task].private(names, options.capabilities())
    zeros = {n: torch.zeros_like(t) for n, t in tensors(request.model).items()}
    gradient = trainer.conclude({}, zeros, zeros, steps).gradient
    update = to_arrays(select(trainer.upload(zeros), names - private))
    return _build_reply(request, update, to_arrays(select(gradient, names - private)), 0.0, learner.examples, steps)


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
