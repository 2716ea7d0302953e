"""Markets as a table."""

from collections.abc import Iterator
from pathlib import Path

from client.data.tables.writer import write_private_csv
from client.tasks.markets.data.markets import Market, Markets
from client.tasks.markets.schema import FIRST, ITEM, MARKET, SECOND, USER


def write_markets(path: Path, dataset: Markets) -> None:
    """Write markets as CSV, readable by the owner only; `read_markets` with the vocabulary inverts it.

    A row is a rating or a pair of items; the cells of the other are empty. A market with neither is a row with its name.
    """
    rows = (row for market in dataset.units for row in _rows(market, dataset.vocabulary.items))
    write_private_csv(path, (MARKET, USER, ITEM, FIRST, SECOND), rows)


def _rows(market: Market, ids: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not len(market.ratings) and not len(market.pairs):
        yield market.name, "", "", "", ""
    yield from ((market.name, f"{user:09d}", ids[item], "", "") for user, item in market.ratings.tolist())
    yield from ((market.name, "", "", ids[a], ids[b]) for a, b in market.pairs.tolist())
