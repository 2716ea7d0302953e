"""Steps on an update before and after its noise, chosen by the run's configuration."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from client.privacy.transforms import Encode, Select, Update, Work, to_packed, to_sparse_rows, update_of
from client.tasks.learner import HasItemRows
from client.trainers.registry import build_trainer
from client.training.failures import DivergedError, ZerosOnFailure
from client.training.local_round import zero_reply
from client.training.participant import Participant
from client.training.state import KeepReleased
from common.arrays import Arrays, Ints, add_prefix, group
from common.config.run import RunConfig, names_rows
from common.wire.messages import LOCAL
from common.wire.sparse_rows import ROWS, VALUES, expand


@dataclass(frozen=True)
class FullTables:
    """Select step: restore whole tables from gathered rows; other rows are zero.

    Args:
        model: The shared model, with whole tables.
    """

    model: Arrays

    def __call__(self, work: Work) -> Work:
        """Return work whose update has whole tables and names no rows."""

        def whole() -> Update:
            update = work()
            tables = add_prefix("update", expand(group("update", update.arrays), self.model))
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


def encode_plain(config: RunConfig, participant: Participant) -> tuple[Encode, ...]:
    """Return the steps that bring a plaintext update into the form in which it is sent."""
    encoding = config.federation.encoding
    rows: tuple[Encode, ...] = (to_sparse_rows,) if sends_rows(config) else ()
    if encoding == "float32":
        return rows
    keep = KeepReleased(build_trainer(config.method_options), participant, encoding)
    return *rows, partial(to_packed, encoding), keep


@dataclass(frozen=True)
class AddPseudoItems:
    """Select step: send some rows of the table of items in place of the whole table.

    Args:
        learner: Client data that name items.
        round: Number of the round.
        count: Number of pseudo items.
        generator: Factory of the random generator; a new one for each draw.
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
    config: RunConfig, participant: Participant, generator: Callable[[], np.random.Generator]
) -> tuple[Select, ...]:
    """Return the steps on exact values: zeros for failed work, full tables, pseudo items, blocks of a sum.

    Args:
        config: Configuration of the run.
        participant: The client, with the reservation of the release.
        generator: Factory of the random generator that draws pseudo items.
    """
    select: list[Select] = []
    learner, request = participant.learner, participant.request
    if participant.reservation:
        zeros = partial(zero_reply, config.method_options, learner, request, participant.steps)
        failures = DivergedError if config.privacy.unit == "record" else Exception
        select.append(ZerosOnFailure(lambda: update_of(zeros()), failures))
    if config.task_options.gathers_rows and not names_rows(config):
        select.append(FullTables(request.model))
    rows = config.task_options.named_rows
    if rows and isinstance(learner, HasItemRows):
        select.append(AddPseudoItems(learner, request.round, rows.pseudo, generator))
    if participant.part:
        select.append(participant.part.blocks(config, participant.steps))
    return tuple(select)


def encode_steps(config: RunConfig, participant: Participant) -> tuple[Encode, ...]:
    """Return the steps on released values: client state takes its part, plain tables become sparse rows."""
    if participant.reservation:
        if participant.request.phase != LOCAL:
            return ()
        keep, part = KeepReleased(build_trainer(config.method_options), participant), participant.part
        return (part.blocks(config, participant.steps).restore, keep) if part else (keep,)
    return () if participant.part else encode_plain(config, participant)
