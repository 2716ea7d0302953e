"""A client's part of the data, whatever the task: the one place that knows which task has which readers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never, cast

from client.data.dataset import Dataset, Unit
from client.data.partition import partition_units
from client.data.sources import and_test, demo_range, is_demo
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.data.reader import DEMO_MARKETS, read_markets
from client.tasks.ratings.data.raters import Ratings
from client.tasks.ratings.data.reader import DEMO_RATERS, read_raters
from client.tasks.rules.data.homes import Homes
from client.tasks.rules.data.reader import DEMO_HOMES, read_homes
from client.tasks.sessions.data.reader import DEMO_VISITORS, read_visitors
from client.tasks.sessions.data.visitors import Visits
from client.tasks.traffic.data.reader import DEMO_SITES, read_series
from client.tasks.traffic.data.series import Sensors
from common.config.run import Task
from common.tasks.markets.options import MarketCatalogue
from common.tasks.ratings.options import ProductCatalogue
from common.tasks.rules.options import RuleCatalogue
from common.tasks.sessions.options import Items
from common.tasks.traffic.options import SensorVariables
from common.tasks.vocabularies import Names
from common.tasks.vocabulary import Vocabulary

Part = Homes | Visits | Sensors | Ratings | Markets

DEMO_SIZES: dict[Task, int] = {
    "rules": DEMO_HOMES,
    "sessions": DEMO_VISITORS,
    "traffic": DEMO_SITES,
    "ratings": DEMO_RATERS,
    "markets": DEMO_MARKETS,
}
"""Homes, visitors, sites, raters and markets of the embedded data."""

NOUNS: dict[type[Vocabulary], str] = {
    RuleCatalogue: "homes",
    Items: "visitors",
    SensorVariables: "sensors",
    ProductCatalogue: "raters",
    MarketCatalogue: "markets",
}


def read_partition(task: Task, source: str, part: tuple[int, int], seed: int = 0, known: Names | None = None) -> Part:
    """The k-th of K parts of a source, part = (k, K); embedded data are made for this part only.

    Raises:
        DataError: The source cannot be read, or cannot be cut into that many parts.
    """
    k, parts = part
    if is_demo(source):
        return read_all(task, demo_part(task, source, part), seed, known)
    whole = read_all(task, source, seed, known)
    return whole if parts == 1 else deal(whole, parts, seed)[k]


def read_all(task: Task, source: str, seed: int = 0, known: Names | None = None) -> Part:
    """All of a source, under the vocabulary `known` or, without one, the data's own.

    Raises:
        DataError: The source cannot be read.
    """
    match task:
        case "rules":
            return read_homes(source, cast(RuleCatalogue | None, known), seed=seed)
        case "sessions":
            clicks, test = and_test(source)
            return read_visitors(clicks, cast(Items | None, known), test=test, seed=seed)
        case "traffic":
            return read_series(source, cast(SensorVariables | None, known), seed=seed)
        case "ratings":
            return read_raters(source, cast(ProductCatalogue | None, known), seed=seed)
        case "markets":
            return read_markets(source, cast(MarketCatalogue | None, known), seed=seed)
        case _:
            assert_never(task)


def demo_part(task: Task, source: str, part: tuple[int, int]) -> str:
    """`demo:0-200` cut into K runs of nearly equal length: the k-th, as a source."""
    start, stop = demo_range(source, DEMO_SIZES[task]) or (0, 0)
    k, parts = part
    return f"demo:{start + k * (stop - start) // parts}-{start + (k + 1) * (stop - start) // parts}"


def deal(whole: Part, parts: int, seed: int = 0) -> Sequence[Part]:
    """Partition a data set among `parts` clients; 0 means one unit each, in their order.

    Raises:
        DataError: There are fewer units than clients.
    """
    units: Sequence[tuple[Unit, ...]] = [(unit,) for unit in whole.units]
    if parts:
        units = partition_units(cast(Sequence[Unit], whole.units), parts, seed, NOUNS[type(whole.vocabulary)])
    return [cast(Part, replace(cast(Dataset[Vocabulary, Unit], whole), units=own)) for own in units]
