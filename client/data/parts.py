"""A client's part of the data, whatever the task: the one place that knows which task has which readers."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import assert_never, cast

from client.data.markets.market import Dataset as Markets
from client.data.markets.published import is_published as is_published_markets
from client.data.markets.reader import DEMO_MARKETS, read_markets
from client.data.markets.writer import write_markets
from client.data.people import dealt
from client.data.ratings.published import is_published as is_published_ratings
from client.data.ratings.raters import Dataset as Ratings
from client.data.ratings.reader import DEMO_RATERS, read_raters
from client.data.ratings.writer import write_raters
from client.data.rules.homes import Dataset as Homes
from client.data.rules.ifttt import is_recrules
from client.data.rules.reader import DEMO_HOMES, read_homes
from client.data.rules.table import SUFFIXES, write_table
from client.data.sessions.published import is_published
from client.data.sessions.reader import DEMO_VISITORS, read_visitors
from client.data.sessions.visitors import Dataset as Visits
from client.data.sessions.writer import write_visitors
from client.data.traffic.published import is_published as is_published_traffic
from client.data.traffic.reader import DEMO_SITES, read_series
from client.data.traffic.series import Dataset as Sensors
from client.data.traffic.writer import write_series
from common.config import Task
from common.errors import ConfigError, DataError
from common.tasks.markets import Goods
from common.tasks.ratings import Products
from common.tasks.rules import Catalogue
from common.tasks.sessions import Items
from common.tasks.traffic import Measures
from common.tasks.vocabularies import Names

Part = Homes | Visits | Sensors | Ratings | Markets

TABLES: dict[Task, str] = {
    "rules": "homes.csv",
    "sessions": "sessions.csv",
    "traffic": "sensors.csv",
    "ratings": "ratings.csv",
    "markets": "market.csv",
}
"""What a client's own table is called."""

HELD_OUT = "::"
"""Between a source of sessions and the file of those to hold out: `clicks.txt::held-out.txt` is a source too."""

DEMO_SIZES: dict[Task, int] = {
    "rules": DEMO_HOMES,
    "sessions": DEMO_VISITORS,
    "traffic": DEMO_SITES,
    "ratings": DEMO_RATERS,
    "markets": DEMO_MARKETS,
}
"""Homes, visitors and sites of the embedded data."""


def is_demo(source: str) -> bool:
    """Whether the data are made, not read; a file may well be called demo.csv."""
    return source == "demo" or source.startswith("demo:")


def with_test(task: Task, source: str, test: str) -> str:
    """The source with the sessions of the file `test` held out; without one, the source as it is.

    Raises:
        ConfigError: Nothing can be held out so: the task is not `sessions`, or the data are made, not read.
    """
    if test and task != "sessions":
        raise ConfigError(
            f"--test names sessions to hold out, the task is {task}; leave it out, or say --task sessions"
        )
    if test and is_demo(source):
        raise ConfigError("--test names sessions to hold out of your own; say where those are with --data")
    return f"{source}{HELD_OUT}{test}" if test else source


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
            clicks, test = _and_test(source)
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
    whole = DEMO_SIZES[task]
    start, stop = map(int, source.partition(":")[2].split("-")) if ":" in source else (0, whole)
    k, parts = part
    return f"demo:{start + k * (stop - start) // parts}-{start + (k + 1) * (stop - start) // parts}"


def deal(whole: Part, parts: int, seed: int = 0) -> Sequence[Part]:
    """Deal homes, visitors or sensors to `parts` clients, 0 meaning one each, in their order.

    Raises:
        DataError: More clients than there is to deal.
    """
    match whole:
        case Homes():
            each = [(home,) for home in whole.homes]
            shares = dealt(whole.homes, parts, seed, lambda home: home.user, "homes") if parts else each
            return [replace(whole, homes=share) for share in shares]
        case Visits():
            alone = [(visitor,) for visitor in whole.visitors]
            groups = dealt(whole.visitors, parts, seed, lambda visitor: visitor.name, "visitors") if parts else alone
            return [replace(whole, visitors=group) for group in groups]
        case Sensors():
            single = [(one,) for one in whole.series]
            hands = dealt(whole.series, parts, seed, lambda one: one.name, "sensors") if parts else single
            return [replace(whole, series=hand) for hand in hands]
        case Ratings():
            lone = [(rater,) for rater in whole.raters]
            crowds = dealt(whole.raters, parts, seed, lambda rater: rater.name, "raters") if parts else lone
            return [replace(whole, raters=crowd) for crowd in crowds]
        case Markets():
            one_each = [(market,) for market in whole.markets]
            lots = dealt(whole.markets, parts, seed, lambda market: market.name, "markets") if parts else one_each
            return [replace(whole, markets=lot) for lot in lots]
        case _:
            assert_never(whole)


def tables(task: Task, source: str) -> list[Path]:
    """The tables of a folder of tables, each of which may be a client's own."""
    folder = Path(source)
    if not folder.is_dir() or _published(task, folder):
        return []
    return sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES)


def write_part(path: Path, part: Part) -> None:
    """Write a client's part as a table of its own, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    match part:
        case Homes():
            write_table(path, part.homes, part.catalogue)
        case Visits():
            write_visitors(path, part.visitors, part.items)
        case Sensors():
            write_series(path, part.series, part.measures)
        case Ratings():
            write_raters(path, part.raters, part.products)
        case Markets():
            write_markets(path, part.markets, part.goods)
        case _:
            assert_never(part)


def fingerprint(source: str, part: tuple[int, int], seed: int) -> str:
    """What state is bound to: other data, other fingerprint.

    Raises:
        DataError: A file may not be read.
    """
    digest = hashlib.sha256(f"{source if is_demo(source) else ''}|{part}|{seed}".encode())
    path, test = _and_test(source)
    try:
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            digest.update(file.read_bytes() if file.is_file() else b"")
        if test:
            digest.update(hashlib.sha256(test.read_bytes()).digest())
    except OSError as error:
        raise DataError(error.strerror or "cannot be read", error.filename or path) from None
    return digest.hexdigest()


def located(source: str) -> str:
    """The source by its whole path, whichever folder a command was started in; embedded data as they are called."""
    if is_demo(source):
        return source
    path, test = _and_test(source)
    return HELD_OUT.join(str(file.resolve()) for file in (path, test) if file)


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


def _and_test(source: str) -> tuple[Path, Path | None]:
    """The two files that `with_test` made one source of."""
    path, mark, test = source.partition(HELD_OUT)
    return (Path(path), Path(test)) if mark and not Path(source).exists() else (Path(source), None)


def _published(task: Task, folder: Path) -> bool:
    """Whether the folder is a public set in its published form."""
    match task:
        case "rules":
            return is_recrules(folder)
        case "sessions":
            return is_published(folder)
        case "traffic":
            return is_published_traffic(folder)
        case "ratings":
            return is_published_ratings(folder)
        case "markets":
            return is_published_markets(folder)
        case _:
            assert_never(task)
