"""Markets task at the client."""

from pathlib import Path
from typing import TYPE_CHECKING

from client.data.sources import Source
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.data.warnings import warn
from client.tasks.markets.schema import SCHEMA
from client.tasks.spec import ClientTask
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.task import TASK as SPEC
from common.tasks.markets.vocabulary import MarketCatalogue
from common.tasks.spec import TaskRun

if TYPE_CHECKING:
    from client.tasks.markets.learner import MarketsLearner


def read(source: Source, goods: MarketCatalogue | None, seed: int) -> Markets:
    """Read a source in any of its forms."""
    from client.tasks.markets.data.reader import read_markets

    return read_markets(source.text, goods, seed=seed, dialect=source.dialect)


def write(path: Path, dataset: Markets) -> None:
    """Write a data set as one table."""
    from client.tasks.markets.data.writer import write_markets

    write_markets(path, dataset.units, dataset.vocabulary)


def learner(run: TaskRun[MarketsOptions, MarketCatalogue], dataset: Markets) -> "MarketsLearner":
    """Prepare a client's data for a run."""
    from client.tasks.markets.learner import MarketsLearner

    return MarketsLearner(run, dataset)


def published(folder: Path) -> bool:
    """Return True if the folder is a public set in its published form."""
    from client.tasks.markets.data.published_folder import is_published

    return is_published(folder)


TASK = ClientTask(
    spec=SPEC,
    unit=("market", "markets"),
    schema=SCHEMA,
    table="market.csv",
    demo_units=6,
    read=read,
    write=write,
    learner=learner,
    published=published,
    warnings=warn,
    client_per_unit=True,
    public_units=True,
)
