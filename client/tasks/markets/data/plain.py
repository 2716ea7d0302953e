"""Plain tables: a catalogue, and markets as ratings or as pairs of items."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from client.data.tables.reader import plain_name
from client.tasks.markets.data.published_folder import titles_of
from client.tasks.markets.data.table_rows import Row, header_of, read_rows
from common.errors import DataError
from common.tasks.markets.vocabulary import MarketCatalogue

Named = list[tuple[str, str]]
"""(user, item) or (item, item), by name."""

ALIASES = {"userid": "user", "user_id": "user", "itemid": "item", "item_id": "item", "rate": "rating", "asin": "item"}
SEVERAL = "market"
"""Column that names the market of each row, where a table holds several."""

NEEDED = "a market needs the columns user,item[,rating] or item_a,item_b; a catalogue item[,title][,description]"


@dataclass
class Records:
    """What a market's files say, by name."""

    ratings: Named = field(default_factory=list)
    pairs: Named = field(default_factory=list)


def read_market(path: Path, name: str) -> dict[str, Records]:
    """The markets of a table, one of that name unless the table names them itself.

    Raises:
        DataError: Columns are missing, a cell that names something is empty, or a rating is no number; with the line.
    """
    if path.suffix == ".parquet":
        raise DataError("Parquet is not read here; save it as CSV", path)
    titles = titles_of(path)
    columns = _known(titles or header_of(path))
    rated, paired = {"user", "item"} <= set(columns), {"item_a", "item_b"} <= set(columns)
    if not (rated or paired):
        raise DataError(NEEDED, path, 1)
    markets: dict[str, Records] = {}
    for row in _rows(path, titles, columns):
        market = markets.setdefault(row.named(SEVERAL) if SEVERAL in columns else name, Records())
        if rated and _holds(row, ("user", "item"), alone=not paired):
            market.ratings.append((row.named("user"), row.named("item")))
            _check_rating(row)
        if paired and _holds(row, ("item_a", "item_b"), alone=not rated):
            market.pairs.append((row.named("item_a"), row.named("item_b")))
    if not markets:
        raise DataError("the file has a header but no rows", path)
    return markets


def read_catalogue(path: Path) -> MarketCatalogue:
    """A catalogue, items in the order of the file; titles and descriptions may be missing.

    Raises:
        DataError: There is no column `item`, an item is empty or listed twice (with the line), or there is none.
    """
    columns = _known(header_of(path))
    if "item" not in columns:
        raise DataError(NEEDED, path, 1, "item")
    lines: dict[str, int] = {}
    texts: list[tuple[str, str]] = []
    for row in _rows(path, (), columns):
        item = row.named("item")
        if item in lines:
            raise DataError(f"listed twice, first in line {lines[item]}; keep one of the two", path, row.line, "item")
        lines[item] = row.line
        texts.append((row.cells.get("title", ""), row.cells.get("description", "")))
    if not lines:
        raise DataError("the file has a header but no rows", path)
    return goods_of(list(lines), texts)


def goods_of(items: Sequence[str], texts: Sequence[tuple[str, str]]) -> MarketCatalogue:
    """A catalogue from items and their (title, description); lists that hold nothing are left out."""
    titles, descriptions = (tuple(column) if any(column) else () for column in zip(*texts, strict=True))
    return MarketCatalogue(items=tuple(items), titles=titles, descriptions=descriptions)


def name_of(path: Path) -> str:
    """What a market is called whose table does not say: `uk` of `uk.csv.gz`."""
    return Path(plain_name(path)).stem


def _known(titles: Sequence[str]) -> list[str]:
    return [ALIASES.get(title.lower(), title.lower()) for title in titles]


def _rows(path: Path, titles: Sequence[str], columns: Sequence[str]) -> Iterator[Row]:
    """The rows under the names that we use."""
    for row in read_rows(path, titles):
        yield Row(row.path, row.line, dict(zip(columns, row.cells.values(), strict=True)))


def _holds(row: Row, titles: Sequence[str], *, alone: bool) -> bool:
    """Whether a row is of that kind; a table may hold both, and a row that is of neither just names its market."""
    return (alone and SEVERAL not in row.cells) or any(row.cells[title] for title in titles)


def _check_rating(row: Row) -> None:
    text = row.cells.get("rating", "")
    try:
        float(text or 0)
    except ValueError:
        raise DataError("not a number", row.path, row.line, "rating") from None
