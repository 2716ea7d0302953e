"""Client task of the sessions task."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from client.data.sources import Source
from client.tasks.sessions.data.generator import demo_visitors
from client.tasks.sessions.data.visitors import Visits
from client.tasks.sessions.data.writer import write_visitors
from client.tasks.sessions.schema import SCHEMA
from client.tasks.spec import ClientTask
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.task import TASK as SPEC
from common.tasks.sessions.vocabulary import Items
from common.tasks.spec import TaskRun

if TYPE_CHECKING:
    from client.data.summary import DataSummary
    from client.data.tables.table import Table
    from client.tasks.sessions.learner import SessionsLearner


def read(source: Source, items: Items | None, seed: int) -> Visits:
    """Read a source in any of its forms."""
    from client.tasks.sessions.data.reader import read_visitors

    return read_visitors(source.path, items, test=source.test, dialect=source.dialect)


def learner(run: TaskRun[SessionsOptions, Items], dataset: Visits) -> "SessionsLearner":
    """Build the learner of a run from a client's data."""
    from client.tasks.sessions.learner import SessionsLearner

    return SessionsLearner(run, dataset)


def published(folder: Path) -> bool:
    """Return True if the folder is a public set in its published form."""
    from client.tasks.sessions.data.published_folder import is_published

    return is_published(folder)


def summarize(options: SessionsOptions, dataset: Visits, tables: Sequence["Table"]) -> "DataSummary":
    """Summarize a data set for its owner."""
    from client.tasks.sessions.data import summary

    return summary.summarize(options, dataset, tables)


TASK = ClientTask(
    spec=SPEC,
    unit=("visitor", "visitors"),
    schema=SCHEMA,
    table="sessions.csv",
    demo_units=400,
    read=read,
    write=write_visitors,
    learner=learner,
    generate=demo_visitors,
    published=published,
    test_file=True,
    takes_splits=True,
    summarize=summarize,
)
