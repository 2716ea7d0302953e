"""A client's part of the data, whatever the task: the one place that knows which task has which readers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar, assert_never, cast

from client.data.partition import dealt
from client.data.sources import and_test, demo_range, is_demo
from client.tasks.markets.data.markets import Dataset as Markets
from client.tasks.markets.data.reader import DEMO_MARKETS, read_markets
from client.tasks.ratings.data.raters import Dataset as Ratings
from client.tasks.ratings.data.reader import DEMO_RATERS, read_raters
from client.tasks.rules.data.homes import Dataset as Homes
from client.tasks.rules.data.reader import DEMO_HOMES, read_homes
from client.tasks.sessions.data.reader import DEMO_VISITORS, read_visitors
from client.tasks.sessions.data.visitors import Dataset as Visits
from client.tasks.traffic.data.reader import DEMO_SITES, read_series
from client.tasks.traffic.data.series import Dataset as Sensors
from common.config.run import Task
from common.tasks.markets.options import Goods
from common.tasks.ratings.options import Products
from common.tasks.rules.options import Catalogue
from common.tasks.sessions.options import Items
from common.tasks.traffic.options import Measures
from common.tasks.vocabularies import Names

P = TypeVar("P")

Part = Homes | Visits | Sensors | Ratings | Markets

DEMO_SIZES: dict[Task, int] = {
    "rules": DEMO_HOMES,
    "sessions": DEMO_VISITORS,
    "traffic": DEMO_SITES,
    "ratings": DEMO_RATERS,
    "markets": DEMO_MARKETS,
}
"""Homes, visitors, sites, raters and markets of the embedded data."""


def read_part(task: Task, source: str, part: tuple[int, int], seed: int = 0, known: Names | None = None) -> Part:
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
            return read_homes(source, cast(Catalogue | None, known), seed=seed)
        case "sessions":
            clicks, test = and_test(source)
            return read_visitors(clicks, cast(Items | None, known), test=test, seed=seed)
        case "traffic":
            return read_series(source, cast(Measures | None, known), seed=seed)
        case "ratings":
            return read_raters(source, cast(Products | None, known), seed=seed)
        case "markets":
            return read_markets(source, cast(Goods | None, known), seed=seed)
        case _:
            assert_never(task)


def demo_part(task: Task, source: str, part: tuple[int, int]) -> str:
    """`demo:0-200` cut into K runs of nearly equal length: the k-th, as a source."""
    start, stop = demo_range(source, DEMO_SIZES[task]) or (0, 0)
    k, parts = part
    return f"demo:{start + k * (stop - start) // parts}-{start + (k + 1) * (stop - start) // parts}"


def deal(whole: Part, parts: int, seed: int = 0) -> Sequence[Part]:
    """Deal homes, visitors, sensors, raters or markets to `parts` clients, 0 meaning one each, in their order.

    Raises:
        DataError: More clients than there is to deal.
    """
    match whole:
        case Homes():
            homes = _shares(whole.homes, parts, seed, lambda one: one.user, "homes")
            return [replace(whole, homes=own) for own in homes]
        case Visits():
            visitors = _shares(whole.visitors, parts, seed, lambda one: one.name, "visitors")
            return [replace(whole, visitors=own) for own in visitors]
        case Sensors():
            series = _shares(whole.series, parts, seed, lambda one: one.name, "sensors")
            return [replace(whole, series=own) for own in series]
        case Ratings():
            raters = _shares(whole.raters, parts, seed, lambda one: one.name, "raters")
            return [replace(whole, raters=own) for own in raters]
        case Markets():
            markets = _shares(whole.markets, parts, seed, lambda one: one.name, "markets")
            return [replace(whole, markets=own) for own in markets]
        case _:
            assert_never(whole)


def _shares(people: Sequence[P], parts: int, seed: int, name: Callable[[P], str], what: str) -> list[tuple[P, ...]]:
    """Dealt to so many clients, 0 meaning one each."""
    return dealt(people, parts, seed, name, what) if parts else [(one,) for one in people]


def vocabulary(part: Part) -> Names:
    """The vocabulary that the part is read under."""
    match part:
        case Homes():
            return part.catalogue
        case Visits():
            return part.items
        case Sensors():
            return part.measures
        case Ratings():
            return part.products
        case Markets():
            return part.goods
        case _:
            assert_never(part)
