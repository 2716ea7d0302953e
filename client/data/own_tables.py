"""A client's part of the data as a table of its own, and folders of such tables."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import assert_never

from client.data.read import Part
from client.data.tables.reader import tables_in
from client.tasks.markets.data import published_folder as markets
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.data.writer import write_markets
from client.tasks.ratings.data import published_folder as ratings
from client.tasks.ratings.data.raters import Ratings
from client.tasks.ratings.data.writer import write_raters
from client.tasks.rules.data import table as rules
from client.tasks.rules.data.homes import Homes
from client.tasks.rules.data.ifttt import is_recrules
from client.tasks.sessions.data import published_folder as sessions
from client.tasks.sessions.data.visitors import Visits
from client.tasks.sessions.data.writer import write_visitors
from client.tasks.traffic.data import published_folder as traffic
from client.tasks.traffic.data.series import Sensors
from client.tasks.traffic.data.writer import write_series
from common.config.run import Task

TABLES: dict[Task, str] = {
    "rules": "homes.csv",
    "sessions": "sessions.csv",
    "traffic": "sensors.csv",
    "ratings": "ratings.csv",
    "markets": "market.csv",
}
"""What a client's own table is called."""


def tables(task: Task, source: str) -> list[Path]:
    """The tables of a folder of tables, each of which may be a client's own."""
    folder = Path(source)
    published, suffixes = _forms(task)
    return tables_in(folder, suffixes) if folder.is_dir() and not published(folder) else []


def write_part(path: Path, part: Part) -> None:
    """Write a client's part as a table of its own, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    match part:
        case Homes():
            rules.write_table(path, part.homes, part.catalogue)
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


def _forms(task: Task) -> tuple[Callable[[Path], bool], Sequence[str]]:
    """Whether a folder is a public set in its published form, and the suffixes of tables."""
    match task:
        case "rules":
            return is_recrules, rules.TABLES
        case "sessions":
            return sessions.is_published, sessions.TABLES
        case "traffic":
            return traffic.is_published, traffic.TABLES
        case "ratings":
            return ratings.is_published, ratings.TABLES
        case "markets":
            return markets.is_published, markets.TABLES
        case _:
            assert_never(task)
