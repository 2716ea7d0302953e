"""Local training on gathered rows of tables, and updates that name these rows."""

from collections.abc import Mapping
from dataclasses import replace

from client.tasks.gathered_rows import GathersRows
from client.training.participant import Participant, build_generator
from common.arrays import Arrays, Ints
from common.wire.sparse_rows import named_rows

USE = "rows"
"""Name of the random generator of gathered rows."""


def gather(participant: Participant) -> Participant:
    """Return the participant with gathered rows in place of whole tables, if it gathers any."""
    learner, request = participant.learner, participant.request
    if not isinstance(learner, GathersRows):
        return participant
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
