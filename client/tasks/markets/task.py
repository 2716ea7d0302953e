"""Client task of the markets task."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from client.data.sources import Source
from client.tasks.markets.data.generator import demo_markets
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.data.published_folder import is_published
from client.tasks.markets.data.writer import write_markets
from client.tasks.markets.schema import SCHEMA
from client.tasks.spec import ClientTask
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.task import TASK as SPEC
from common.tasks.markets.vocabulary import MarketCatalogue
from common.tasks.spec import TaskRun

if TYPE_CHECKING:
    from client.data.summary import DataSummary
    from client.data.tables.table import Table
    from client.tasks.markets.learner import MarketsLearner


def read(source: Source, catalogue: MarketCatalogue | None, seed: int) -> Markets:
    """Read a source in any of its forms."""
    from client.tasks.markets.data.reader import read_markets

    return read_markets(source.text, catalogue, dialect=source.dialect)


def learner(run: TaskRun[MarketsOptions, MarketCatalogue], dataset: Markets) -> "MarketsLearner":
    """Build the learner of a run from a client's data."""
    from client.tasks.markets.learner import MarketsLearner

    return MarketsLearner(run, dataset)


def warnings(options: MarketsOptions, dataset: Markets) -> Iterable[str]:
    """Return what the owner should know about the data before training."""
    from client.tasks.markets.data.warnings import warn

    return warn(options, dataset)


def summarize(options: MarketsOptions, dataset: Markets, tables: Sequence["Table"]) -> "DataSummary":
    """Summarize a data set for its owner."""
    from client.tasks.markets.data import summary

    return summary.summarize(options, dataset, tables)


TASK = ClientTask(
    spec=SPEC,
    unit=("market", "markets"),
    schema=SCHEMA,
    table="market.csv",
    demo_units=6,
    read=read,
    write=write_markets,
    learner=learner,
    published=is_published,
    generate=demo_markets,
    warnings=warnings,
    client_per_unit=True,
    public_units=True,
    summarize=summarize,
)
