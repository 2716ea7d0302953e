"""A client's part of the data as a table of its own, and folders of such tables."""

from pathlib import Path
from typing import assert_never

from client.data.markets.market import Dataset as Markets
from client.data.markets.published import is_published as is_published_markets
from client.data.markets.reader import tables_of as market_tables
from client.data.markets.writer import write_markets
from client.data.parts import Part
from client.data.ratings.published import is_published as is_published_ratings
from client.data.ratings.raters import Dataset as Ratings
from client.data.ratings.writer import write_raters
from client.data.rules.homes import Dataset as Homes
from client.data.rules.ifttt import is_recrules
from client.data.rules.table import SUFFIXES, write_table
from client.data.sessions.published import is_published
from client.data.sessions.visitors import Dataset as Visits
from client.data.sessions.writer import write_visitors
from client.data.traffic.published import is_published as is_published_traffic
from client.data.traffic.series import Dataset as Sensors
from client.data.traffic.writer import write_series
from common.config import Task

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
    if not folder.is_dir() or _published(task, folder):
        return []
    if task == "markets":
        return market_tables(folder)
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
