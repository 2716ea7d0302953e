"""One round of local training: a cohort trains stacked, and sends single replies or one contribution."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import cast

import numpy as np
import torch
from torch import Tensor

from client.tasks.learner import GatheredBatch, GathersRows, Learner
from client.trainers.base import Cohort, CohortResult, Trainer, require_forms
from client.trainers.registry import build_trainer
from client.training.participant import Participant, build_generator
from client.training.stacks import Tensors, are_finite, at, move, row, select, stack, to_arrays
from client.training.state import build_cohort, save_states
from common.arrays import Arrays, Floats, Ints
from common.contribution import BlockReply, ClientBlock, Contribution, Member, rows_of_lengths
from common.errors import FedloomError
from common.methods.base import MethodOptions
from common.models import tensors
from common.tasks.registry import TASKS
from common.wire.messages import LOCAL, TrainReply, TrainRequest
from common.wire.sparse_rows import named_rows, numbers_of, rows_of

USE = "rows"
"""Name of the random generator of gathered rows."""


class DivergedError(FedloomError):
    """The parameters are not finite."""

    def __init__(self) -> None:
        super().__init__("local training diverged (non-finite parameters); lower lr or set clip-norm")


Outcome = TrainReply | FedloomError
"""Reply of a participant, or the error that it gets in place of one."""

IsDoubtful = Callable[[dict[str, Floats], Floats], Sequence[int]]
"""(`update` and `gradient` -> lengths, (K,); losses, (K,)) -> clients that send a single reply."""


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


@dataclass(frozen=True)
class TrainedCohort:
    """Results of a cohort, before its states are stored.

    Args:
        options: Options of the method.
        participants: K participants.
        update: Δ_k as sent, K × ….
        gradient: s_k as sent, K × ….
        losses: Loss of each participant, (K,).
        counted: Numbers of the participants with finite results; the others get an error, and their state does not change.
        save: Stores the states of counted participants; see `save_states`.
    """

    options: MethodOptions
    participants: Sequence[Participant]
    update: Tensors
    gradient: Tensors
    losses: Floats
    counted: list[int]
    save: Callable[..., None]

    @cached_property
    def lengths(self) -> dict[str, Floats]:
        """`update` and `gradient` -> length of each reply, (K,)."""
        return {kind: _lengths(t) for kind, t in (("update", self.update), ("gradient", self.gradient)) if t}

    @property
    def rows(self) -> dict[str, Ints]:
        """Table that replies hold as gathered rows -> number of each client's rows, (K,)."""
        tables = [gathered_rows(p) for p in self.participants]
        return {table: np.array([len(ids[table]) for ids in tables]) for table in tables[0]}

    def replies(self) -> list[Outcome]:
        """Store the client states and return single replies, whose arrays are views."""
        if self.participants[0].request.phase == LOCAL:
            self.save(self.counted)
        update, gradient = to_arrays(self.update), to_arrays(self.gradient)
        return self._outcomes(lambda k: self._reply(k, at(update, k), at(gradient, k)))

    def sum_up(self, number: int, is_doubtful: IsDoubtful, most: int) -> tuple[list[Outcome], ClientBlock]:
        """Sum the replies and store the client states in one version.

        Doubtful clients have an ordinary reply, and their state keeps what the server may take back. `number` is that of the
        block in its round, and `most` the records of a client that count.
        """
        single = set(is_doubtful(self.lengths, self.losses)) & set(self.counted)
        self.save(self.counted, newest=True, doubtful=sorted(single))
        summed = [k for k in self.counted if k not in single]
        lengths, capabilities = rows_of_lengths(self.lengths), self.options.capabilities()
        weights = np.zeros(len(self.participants))
        weights[summed] = [self.options.weight(self.participants[k].learner.examples, most) for k in summed]
        pairs = [(k, self.participants[k]) for k in summed]
        members = [Member(p.client, float(weights[k]), p.steps, float(self.losses[k]), lengths[k]) for k, p in pairs]
        sums = Contribution(per_step=capabilities.per_step, magnitude=capabilities.needs_magnitude)
        sums.add_stack(members, weights, *(to_arrays(self._finite(t)) for t in (self.update, self.gradient)))
        block = ClientBlock(number, tuple(member.name for member in members), sums)

        def reply(k: int) -> TrainReply:
            if k in single:  # a view would keep the block's arrays in memory
                update, gradient = (
                    to_arrays({n: x.clone() for n, x in row(t, k).items()}) for t in (self.update, self.gradient)
                )
                return self._reply(k, update, gradient)
            p, loss = self.participants[k], float(self.losses[k])
            return BlockReply(p.request.round, {}, {}, loss, p.learner.examples, p.steps, block, lengths[k])

        return self._outcomes(reply), block

    def _finite(self, stacked: Tensors) -> Tensors:
        """Return zeros for clients that are not finite, whose products with weight 0 are NaN."""
        finite = torch.from_numpy(np.isfinite([*self.lengths.values()]).all(axis=0))
        if finite.all():
            return stacked
        return {n: torch.where(finite.view(-1, *[1] * (t.dim() - 1)), t, 0.0) for n, t in stacked.items()}

    def _outcomes(self, reply: Callable[[int], TrainReply]) -> list[Outcome]:
        counted = set(self.counted)
        return [reply(k) if k in counted else DivergedError() for k in range(len(self.participants))]

    def _reply(self, k: int, update: Arrays, gradient: Arrays) -> TrainReply:
        p, rows = self.participants[k], gathered_rows(self.participants[k])
        named, loss = (name_rows(update, rows), name_rows(gradient, rows)), float(self.losses[k])
        return TrainReply(p.request.round, *named, loss, p.learner.examples, p.steps)


def train(options: MethodOptions, participants: Sequence[Participant]) -> list[Outcome]:
    """Train all participants for the same number of steps, and return their replies."""
    return train_together(options, participants).replies()


def train_together(
    options: MethodOptions, participants: Sequence[Participant], *, with_all: bool = False
) -> TrainedCohort:
    """Train all participants for the same number of steps; a single client is a stack of one.

    With `with_all`, every client with a state is in this round; clients can then share the rows that they do not touch.
    """
    trainer = build_trainer(options)
    if trainer.measures:
        return _measure(trainer, participants)
    participants = gather(participants)
    names, steps = set(participants[0].request.model), participants[0].steps
    private = TASKS[participants[0].learner.task].private(names, options.capabilities())
    cohort = build_cohort(trainer, participants, private, with_all=with_all)
    result = _train_on(participants[0].device, trainer, cohort)
    updates = {n: cohort.start[n] - p for n, p in result.descent.params.items()}
    local = trainer.conclude(cohort.control, updates, result.descent.gradient, steps)
    updates, gradient = (cohort.own_rows.lengthen(t) if cohort.own_rows else t for t in (updates, local.gradient))
    uploaded = require_forms(options.name, "upload", trainer.upload(updates), updates)
    update, gradient = select(uploaded, names - private), select(gradient, names - private)
    is_usable = are_finite(result.personalized) if result.personalized else [True] * len(participants)
    # noise on records covers a failure of the update, but not of the personalized model
    covered = [is_usable[k] or p.noise is not None for k, p in enumerate(participants)]
    counted = [k for k, is_finite in enumerate(are_finite(updates)) if is_finite and covered[k]]
    save = partial(save_states, trainer, cohort, result, local.state, is_usable=is_usable)
    return TrainedCohort(options, participants, update, gradient, result.descent.loss.double().numpy(), counted, save)


def _train_on(device: str, trainer: Trainer, cohort: Cohort) -> CohortResult:
    """Train a cohort on a device; its states and results are in main memory."""
    if device == "cpu":
        return trainer.train_cohort(cohort)
    names = ("start", "moments", "control", "personalized", "heads")
    there = replace(cohort, **{name: move(getattr(cohort, name), device) for name in names})
    return move(trainer.train_cohort(there), "cpu")


def _measure(trainer: Trainer, participants: Sequence[Participant]) -> TrainedCohort:
    """Return statistics in place of updates; such clients have no state."""
    measured = [trainer.statistics(participant) for participant in participants]
    participants = [
        replace(participant, gathered=GatheredBatch(rows_of(arrays), {}))
        for participant, arrays in zip(participants, measured, strict=True)
    ]
    statistics = stack([tensors(numbers_of(arrays)) for arrays in measured])
    counted = [k for k, is_finite in enumerate(are_finite(statistics)) if is_finite]
    losses = np.zeros(len(participants))
    return TrainedCohort(trainer.options, participants, statistics, {}, losses, counted, lambda *_, **__: None)


def zero_reply(options: MethodOptions, learner: Learner, request: TrainRequest, steps: int) -> TrainReply:
    """Return a reply of the right shapes whose numbers are all zero."""
    trainer = build_trainer(options)
    zeros = tensors({n: np.zeros_like(a) for n, a in trainer.template(learner.task, request).items()})
    shared = zeros.keys() - TASKS[learner.task].private(set(request.model), options.capabilities())
    gradient = select(trainer.conclude({}, zeros, zeros, steps).gradient, shared)
    update = select(trainer.upload(zeros), shared)
    return TrainReply(request.round, to_arrays(update), to_arrays(gradient), 0.0, learner.examples, steps)


def _lengths(stacked: Tensors) -> Floats:
    squares = [torch.linalg.vector_norm(t.flatten(1), dim=1, dtype=torch.float64).square() for t in stacked.values()]
    lengths: Tensor = torch.stack(squares).sum(0).sqrt()
    return np.asarray(lengths.numpy(), np.float64)
