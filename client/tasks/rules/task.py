"""Client task of the rules task."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from client.data.sources import Source
from client.tasks.rules.data.generator import demo_homes
from client.tasks.rules.data.homes import Homes
from client.tasks.rules.data.writer import write_homes
from client.tasks.rules.schema import SCHEMA
from client.tasks.spec import ClientTask
from common.tasks.rules.options import RulesOptions
from common.tasks.rules.task import TASK as SPEC
from common.tasks.rules.vocabulary import RuleCatalogue
from common.tasks.spec import TaskRun

if TYPE_CHECKING:
    from client.data.summary import DataSummary
    from client.data.tables.table import Table
    from client.tasks.rules.learner import RulesLearner


def read(source: Source, catalogue: RuleCatalogue | None, seed: int) -> Homes:
    """Read a source in any of its forms."""
    from client.tasks.rules.data.reader import read_homes

    return read_homes(source.text, catalogue, dialect=source.dialect)


def learner(run: TaskRun[RulesOptions, RuleCatalogue], dataset: Homes) -> "RulesLearner":
    """Build the learner of a run from a client's data."""
    from client.tasks.rules.learner import RulesLearner

    return RulesLearner(run, dataset)


def published(folder: Path) -> bool:
    """Return True if the folder is a public set in its published form."""
    from client.tasks.rules.data.home_assistant.reader import is_home_assistant
    from client.tasks.rules.data.ifttt import is_recrules

    return is_recrules(folder) or is_home_assistant(folder)


def summarize(options: RulesOptions, dataset: Homes, tables: Sequence["Table"]) -> "DataSummary":
    """Summarize a data set for its owner."""
    from client.tasks.rules.data import summary

    return summary.summarize(options, dataset, tables)


TASK = ClientTask(
    spec=SPEC,
    unit=("home", "homes"),
    schema=SCHEMA,
    table="homes.csv",
    demo_units=400,
    read=read,
    write=write_homes,
    learner=learner,
    generate=demo_homes,
    published=published,
    summarize=summarize,
)
