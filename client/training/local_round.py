"""One round of local training, for one client, a stacked cohort, or clients whose replies are summed."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import torch
from torch import Tensor

from client.state import ClientMemory
from client.tasks.learner import GathersRows, Learner
from client.trainers.base import Cohort, CohortResult, LocalResult, Trainer
from client.trainers.registry import build_trainer
from client.training.descent import find_own_rows
from client.training.failures import DivergedError
from client.training.participant import Participant, build_generator
from client.training.stacks import OwnRows, Tensors, are_finite, at, own_rows_of, row, select, to_arrays
from client.training.state import (
    build_cohort,
    find_rows,
    is_one_request,
    save_newest,
    save_states,
    settle,
    stacked_moments,
)
from common.arrays import Arrays, Floats, Ints
from common.contribution import BlockReply, ClientBlock, Contribution, Member, rows_of_lengths
from common.errors import FedloomError
from common.methods.base import MethodOptions
from common.models import tensors
from common.tasks.registry import TASKS
from common.wire.messages import LOCAL, TrainReply, TrainRequest
from common.wire.sparse_rows import named_rows

USE = "rows"
"""Name of the random generator of gathered rows."""


def gather(participants: Sequence[Participant]) -> list[Participant]:
    """Return participants of one task, with gathered rows in place of whole tables if they gather any."""
    if not isinstance(participants[0].learner, GathersRows):
        return list(participants)
    return [_gather(cast(GathersRows, participant.learner), participant) for participant in participants]


def _gather(learner: GathersRows, participant: Participant) -> Participant:
    request = participant.request
    gathered = learner.gather(request, build_generator(participant, USE))
    if gathered is None:
        return participant
    model = {**request.model, **{table: request.model[table][rows] for table, rows in gathered.rows.items()}}
    return replace(participant, request=replace(request, model=model), gathered=gathered)


def gathered_rows(participant: Participant) -> Mapping[str, Ints]:
    """Return the ids of the rows of each gathered table; empty if local steps work on whole tables."""
    return participant.gathered.rows if participant.gathered else {}


def name_rows(arrays: Arrays, tables: Mapping[str, Ints]) -> Arrays:
    """Return a client's arrays with each gathered table as its rows and their ids, without padding."""
    named = {n: a for n, a in arrays.items() if n not in tables}
    for table in tables.keys() & arrays.keys():
        named |= named_rows(table, tables[table], arrays[table][: len(tables[table])])
    return named


def build_sharing_cohort(
    trainer: Trainer, participants: Sequence[Participant], private: Collection[str]
) -> Cohort | None:
    """Load the client states and build the first parameters, with short tables.

    Return None unless the method treats all numbers alike, and the clients have had all rounds in common.
    """
    options, clients = trainer.options, len(participants)
    is_alike = trainer.acts_on_numbers and options.clip_norm == 0 and options.capabilities().own_model == "none"
    own = find_own_rows(participants) if is_alike and not private else None
    if own is None or not is_one_request([p.request for p in participants]):
        return None
    found, request = _find_state(participants, own), participants[0].request
    if found is None:
        return None
    together, own = found
    start = {
        n: t if n in own.tables else t.expand(clients, *t.shape).contiguous()
        for n, t in own.shorten(tensors(request.model)).items()
    }
    control = settle(trainer, together, request, own.shorten(tensors(request.shared)))
    moments = stacked_moments(options, together, request, start, clients)
    nothing: list[Tensors] = [{}] * clients
    return Cohort(participants, start, moments, control, nothing, nothing, private, stays_stacked=True, own=own)


def _find_state(participants: Sequence[Participant], own: OwnRows) -> tuple[ClientMemory, OwnRows] | None:
    """Return the stacked state of these clients with its rows, an empty one before their first round.

    Args:
        participants: K clients.
        own: Rows that they touch; the state may have further ones.
    """
    memories = [p.store.load(p.run) for p in participants]
    if not any(memory.groups for memory in memories):
        return ClientMemory(), own
    together, places = find_rows(memories, [p.request for p in participants])
    stored = own_rows_of(together.groups) if together else None
    if together is None or stored is None:
        return None
    if len(places) < len(stored.ids):
        together = replace(together, groups=stored.select(together.groups, places))
        stored = replace(stored, ids=stored.ids[places])
    is_same = own.tables == stored.tables and own.ids.equal(stored.ids[:, : own.ids.shape[1]])
    return (together, stored) if is_same else None


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


IsDoubtful = Callable[[dict[str, Floats], Floats], Sequence[int]]
"""(`update` and `gradient` -> lengths, (K,); losses, (K,)) -> clients that send a single reply."""


@dataclass(frozen=True)
class FoldedCohort:
    """Replies of a cohort whose arrays are summed.

    Args:
        replies: Reply of each participant, or the error that it gets in place of one.
        lengths: `update` and `gradient` -> length of each reply, (K,).
        update: Δ_k, K × …, which the replies do not hold.
        gradient: s_k, K × …, which the replies do not hold.
        block: The clients in the sum, and the sum.
    """

    replies: list[TrainReply | FedloomError]
    lengths: dict[str, Floats]
    update: Tensors
    gradient: Tensors
    block: ClientBlock


def train_folded(
    options: MethodOptions,
    participants: Sequence[Participant],
    number: int,
    is_doubtful: IsDoubtful,
    *,
    with_all: bool = False,
) -> FoldedCohort:
    """Train a block of participants, sum their replies and store their client states in one version.

    Doubtful clients have an ordinary reply, and their state keeps what the server may take back.

    Args:
        options: Options of the method.
        participants: The block.
        number: Place of the block in its round.
        is_doubtful: Choice of the doubtful clients.
        with_all: True if every client with a state is in this round.
    """
    trained = descend_together(options, participants, with_all=with_all)
    own, losses = trained.result.personalized, trained.result.descent.loss.double().numpy()
    is_usable = are_finite(own) if own else [True] * len(participants)
    counted = [k for k, (a, b) in enumerate(zip(trained.is_finite, is_usable, strict=True)) if a and b]
    lengths = {kind: _lengths(t) for kind, t in (("update", trained.update), ("gradient", trained.gradient)) if t}
    alone = set(is_doubtful(lengths, losses)) & set(counted)
    save_newest(trained.trainer, trained.cohort, trained.result, trained.local.state, counted, sorted(alone))
    summed = [k for k in counted if k not in alone]
    weights = np.array([options.weight(p.learner.examples) if k in summed else 0.0 for k, p in enumerate(participants)])
    update, gradient = (to_arrays(_only(summed, t)) for t in (trained.update, trained.gradient))
    rows = rows_of_lengths(lengths)
    members = [
        Member(p.client, float(weights[k]), p.steps, float(losses[k]), rows[k])
        for k, p in enumerate(participants)
        if k in summed
    ]
    capabilities = options.capabilities()
    sums = Contribution(per_step=capabilities.per_step, magnitude=capabilities.needs_magnitude)
    sums.add_stack(members, weights, update, gradient)
    block = ClientBlock(number, tuple(participants[k].client for k in summed), sums)

    def reply(k: int) -> TrainReply | FedloomError:
        p = participants[k]
        if k in alone:
            return build_reply(p, _own(trained.update, k), _own(trained.gradient, k), float(losses[k]))
        return BlockReply(
            round=p.request.round,
            update={},
            gradient={},
            loss=float(losses[k]),
            examples=p.learner.examples,
            steps=p.steps,
            block=block,
            lengths={kind: float(length[k]) for kind, length in lengths.items()},
        )

    replies = [reply(k) if k in counted else DivergedError() for k in range(len(participants))]
    return FoldedCohort(replies, lengths, trained.update, trained.gradient, block)


def _lengths(stacked: Tensors) -> Floats:
    squares = [torch.linalg.vector_norm(t.flatten(1), dim=1, dtype=torch.float64).square() for t in stacked.values()]
    lengths: Tensor = torch.stack(squares).sum(0).sqrt()
    return np.asarray(lengths.numpy(), np.float64)


def _only(clients: Sequence[int], stacked: Tensors) -> Tensors:
    """Return zeros for the other clients, whose products with weight 0 may be NaN."""
    total = len(next(iter(stacked.values()), ()))
    if len(clients) >= total:
        return stacked
    keep = torch.zeros(total, dtype=torch.bool)
    keep[list(clients)] = True
    return {n: torch.where(keep.view(-1, *[1] * (t.dim() - 1)), t, 0.0) for n, t in stacked.items()}


def _own(stacked: Tensors, k: int) -> Arrays:
    return to_arrays(row(stacked, k))
