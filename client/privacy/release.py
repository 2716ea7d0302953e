"""Clip, add noise to, and account for every payload before it is sent."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from client.owner.consent import Consent
from client.owner.policy import Policy
from client.privacy.budget import Budget, OpenLedger, Reservation, sort_bounds
from client.privacy.transforms import (
    AdditiveNoise,
    Encode,
    InternalNoise,
    Plaintext,
    Privatize,
    Released,
    Select,
    Update,
    UpdateChain,
    Work,
    ZerosOnFailure,
    update_of,
)
from client.tasks.learner import HasItemRows
from client.trainers.base import Trainer
from client.training.local_round import DivergedError, zero_reply
from client.training.participant import Participant
from common.arrays import Arrays, Ints, add_prefix, group
from common.config.run import RunConfig, names_rows
from common.privacy.mechanisms import fresh_generator
from common.wire.encodings import pack, unpack
from common.wire.messages import LOCAL, AssignReply, AssignRequest, EnrolReply, TrainReply
from common.wire.sparse_rows import ROWS, VALUES, compress, expand


def restore_tables(template: Callable[[], Arrays], work: Work) -> Work:
    """Return work with whole tables of this template in place of rows; other rows are zero."""

    def whole() -> Update:
        update = work()
        tables = add_prefix("update", expand(group("update", update.arrays), template()))
        others = {n: a for n, a in update.arrays.items() if not n.startswith("update/")}
        return replace(update, arrays={**tables, **others})

    return whole


def passes_unchanged(config: RunConfig, participant: Participant) -> bool:
    """Return True if `release_update` changes nothing but the encoding of tables.

    The run has neither noise nor pseudo items nor rounded numbers, and the reply no masks.
    """
    is_rounded = config.federation.encoding != "float32"
    return not (participant.reservation or config.task_options.named_rows or participant.part or is_rounded)


def sends_rows(config: RunConfig) -> bool:
    """Return True if tables in plaintext updates are sent as their touched rows where these are smaller."""
    return config.federation.updates == "auto" and not config.task_options.named_rows


def to_sparse_rows(released: Released) -> Released:
    """Encode tables as the rows that are not all zero, where that takes fewer bytes."""
    return replace(released, arrays=compress(released.arrays))


def to_packed(encoding: str, released: Released) -> Released:
    """Encode numbers with fewer bytes."""
    return replace(released, arrays=pack(released.arrays, encoding))


@dataclass(frozen=True)
class AddPseudoItems:
    """Select step: send some rows of the table of items in place of the whole table.

    The generator is a new one for each draw.
    """

    learner: HasItemRows
    round: int
    count: int
    generator: Callable[[], np.random.Generator]

    def __call__(self, work: Work) -> Work:
        """Return work whose update holds the rows of own and of pseudo items, with their ids."""
        rated, table = self.learner.own_items(self.round), f"update/{self.learner.table}"

        def rows() -> Update:
            update = work()
            items = update.arrays[table]
            ids = draw_items(rated, len(items), self.count, self.generator())
            rest = {name: a for name, a in update.arrays.items() if name != table}
            named = {table + ROWS: ids, table + VALUES: items[ids]}
            return replace(update, arrays={**rest, **named}, ids=frozenset({table + ROWS}))

        return rows


def draw_items(rated: Ints, items: int, count: int, rng: np.random.Generator) -> Ints:
    """Return the rated items and `count` pseudo items, or as many as exist; ascending, to reveal nothing."""
    unrated = np.setdiff1d(np.arange(items), rated)
    pseudo = rng.choice(unrated, min(count, len(unrated)), replace=False)
    return np.sort(np.concatenate([rated, pseudo]).astype(np.int64))


def select_steps(
    config: RunConfig, trainer: Trainer, participant: Participant, generator: Callable[[], np.random.Generator]
) -> tuple[Select, ...]:
    """Return the steps on exact values: zeros for failed work, full tables, pseudo items, blocks of a sum."""
    select: list[Select] = []
    learner, request = participant.learner, participant.request
    if participant.reservation:
        zeros = partial(zero_reply, config.method_options, learner, request, participant.steps)
        failures = DivergedError if config.privacy.unit == "record" else Exception
        select.append(ZerosOnFailure(lambda: update_of(zeros()), failures))
    if config.keeps_rows and not names_rows(config):
        select.append(partial(restore_tables, partial(trainer.template, learner.task, request)))
    rows = config.task_options.named_rows
    if rows and isinstance(learner, HasItemRows):
        select.append(AddPseudoItems(learner, request.round, rows.pseudo, generator))
    if participant.part:
        select.append(participant.part.blocks(config, participant.steps))
    return tuple(select)


def encode_steps(config: RunConfig, trainer: Trainer, participant: Participant) -> tuple[Encode, ...]:
    """Return the steps on released values: client state takes its part, tables become sparse rows."""
    part, encoding = participant.part, config.federation.encoding
    if participant.reservation:
        if participant.request.phase != LOCAL:
            return ()
        keep = KeepReleased(trainer, participant)
        return (part.blocks(config, participant.steps).restore, keep) if part else (keep,)
    if part:
        return ()
    rows: tuple[Encode, ...] = (to_sparse_rows,) if sends_rows(config) else ()
    if encoding == "float32":
        return rows
    return *rows, partial(to_packed, encoding), KeepReleased(trainer, participant, encoding)


@dataclass(frozen=True)
class KeepReleased:
    """Encode step: store the released values in the client state, if the method needs them.

    `encoding` is the form of rounded numbers, which are stored as the server reads them; empty if none are rounded.
    """

    trainer: Trainer
    participant: Participant
    encoding: str = ""

    def __call__(self, released: Released) -> Released:
        """Store the values of this round; return them unchanged."""
        participant, request = self.participant, self.participant.request
        if request.phase != LOCAL:
            return released
        update, gradient = (self._values(released, kind) for kind in ("update", "gradient"))
        groups = self.trainer.released_state(update, gradient, participant.steps)
        if groups and (state := participant.store.load(participant.run)).round == request.round:
            merged = {key: {**state.groups.get(key, {}), **tensors} for key, tensors in groups.items()}
            participant.store.save(participant.run, replace(state, groups={**state.groups, **merged}))
        return released

    def _values(self, released: Released, kind: str) -> Arrays:
        arrays = group(kind, released.client_part or released.arrays)
        if not self.encoding:
            return arrays
        return expand(
            unpack(arrays, self.encoding, kind),
            self.trainer.template(self.participant.learner.task, self.participant.request),
            kind,
        )


class Releaser:
    """Last step before the network; in runs without noise, values pass unchanged.

    Seeded generators are for tests and simulations. `part` names the client's partition, if several clients share a data set
    and thus its ledger. `consent` has the contract whose hash is charged with each release.
    """

    def __init__(
        self,
        policy: Policy,
        open_ledger: OpenLedger,
        generator: Callable[[], np.random.Generator] = fresh_generator,
        part: str = "",
        consent: Consent | None = None,
    ) -> None:
        self.policy, self.generator, self.consent = policy, generator, consent or Consent()
        self.budget = Budget(policy, open_ledger, part, self.consent)

    @property
    def min_sum(self) -> int:
        """Smallest secure sum for this client, by its policy and its contract."""
        return max(self.policy.min_sum, self.consent.contract.min_sum if self.consent.contract else 0)

    def release_enrolment(self, config: RunConfig, reply: EnrolReply) -> EnrolReply:
        """Hide the number of records under noise or masks; add budget, ledger and policy on metrics.

        Raises:
            RefusedError: The budget is exhausted.
        """
        shares = self.policy.shares_metrics(config.privacy)
        shares = shares or (config.privacy.unit == "none" and self.policy.sums_metrics(config.privacy))
        reply = replace(reply, shares_metrics=shares)
        if config.privacy.resolved_trust == "helpers":
            reply = replace(reply, examples=1)
        if config.privacy.unit == "none":
            return reply
        budget, head = self.budget.remaining(config, reply.enrolment), self.budget.ledger(config.privacy).head()
        return replace(reply, examples=1, budget=budget, ledger=head.public)

    def privatize(self, reservation: Reservation | None, steps: int = 0) -> Privatize:
        """Return the step from exact to released values: plaintext without a reservation.

        Under unit `record`, local steps carry the noise themselves.
        """
        if reservation is None:
            return Plaintext()
        if reservation.options.unit == "record":
            return InternalNoise(reservation, reservation.dp_sgd(steps))
        return AdditiveNoise(reservation, self.generator)

    def release_update(
        self, config: RunConfig, trainer: Trainer, participant: Participant, work: Callable[[], TrainReply]
    ) -> TrainReply:
        """Release the reply of a round of local training.

        Failed work becomes zeros, pseudo items are added, then clip and noise are applied. At last the client state takes the
        released part, and tables are encoded as sparse rows. A repeated request gets identical bytes. Under DP-SGD the work
        draws the noise itself.

        Raises:
            RefusedError: The cost exceeds a limit by now.
        """
        request, reservation = participant.request, participant.reservation
        privatize = self.privatize(reservation, participant.steps)
        if participant.part:
            internal = privatize.mechanism if isinstance(privatize, InternalNoise) else None
            privatize = participant.part.privatize(reservation, self.generator, internal)
        select = select_steps(config, trainer, participant, self.generator)
        chain = UpdateChain(select, privatize, encode_steps(config, trainer, participant))
        released = chain(lambda: update_of(work()))
        if reservation:
            reservation.acknowledge()
        update, gradient = group("update", released.arrays), group("gradient", released.arrays)
        return TrainReply(
            request.round,
            update,
            gradient,
            released.loss,
            released.examples,
            participant.steps,
            masked=released.masked,
            sealed=released.sealed,
            ledger=reservation.head if reservation else "",
        )

    def release_assignment(
        self, config: RunConfig, request: AssignRequest, work: Callable[[], AssignReply]
    ) -> AssignReply:
        """Release assignment scores and property parameters as one vector, charged apart from the update.

        Raises:
            RefusedError: The cost exceeds a limit, or the run's noise does not cover assignments.
        """
        reservation = self.budget.reserve(config, request)
        dtype = np.float32 if reservation else np.float64

        def update() -> Update:
            exact = work()
            losses = {key: np.array(value, dtype) for key, value in exact.losses.items()}
            return Update({**add_prefix("loss", losses), **add_prefix("property", exact.property)})

        released = UpdateChain((), self.privatize(reservation))(update).arrays
        losses = {key: float(value) for key, value in group("loss", released).items()}
        bounds = group("property", released)
        if reservation is None:
            return AssignReply(request.round, losses, bounds)
        return AssignReply(request.round, losses, sort_bounds(bounds), ledger=reservation.head)
