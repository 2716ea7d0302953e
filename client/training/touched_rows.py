"""Local training on gathered rows of tables, and updates that name these rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from client.tasks.gathered_rows import GathersRows
from client.training.participant import Participant, build_generator
from common.arrays import Arrays, Ints
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
