"""Every form of market data behind one door."""

import re
from pathlib import Path

from client.data.sources import demo_range
from client.data.tables.reader import plain_name, suffix_of, tables_in
from client.tasks.markets.data.assemble import to_dataset
from client.tasks.markets.data.generator import SIZES, demo_markets
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.data.plain import Records, name_of, read_catalogue, read_market
from client.tasks.markets.data.published_folder import (
    METADATA,
    RATINGS,
    TABLES,
    Product,
    catalogue_of,
    is_catalogue,
    named,
    read_metadata,
)
from common.errors import DataError, VocabularyError
from common.tasks.markets.demo import demo_market_catalogue
from common.tasks.markets.vocabulary import MarketCatalogue

DEMO_MARKETS = len(SIZES)
"""Markets in `demo` when no range is named."""


def read_markets(source: Path | str, goods: MarketCatalogue | None = None, *, seed: int = 0) -> Markets:
    """Read the markets of one source, in the order of their names.

    Args:
        source: A market's table, `user,item[,rating]` or `item_a,item_b` (CSV, TSV or text; a column `market` where it holds
            several); a folder of such tables, each a market named after its file, and perhaps `catalogue.csv`
            (`item,title,description`); XMarket's ratings, its metadata, or both, as published; or the embedded `demo`,
            `demo:2-4` being its markets 2 and 3. All may be gzipped.
        goods: The federation's catalogue; rows with other items are skipped and counted in a note. Without one it is the
            source's own or, failing that, all items of all its markets by name.
        seed: Of the demo markets.

    Raises:
        DataError: The data are missing, empty or malformed, or a market has nothing in common with the catalogue.
        VocabularyError: The demo, under another catalogue than its own.
    """
    if demo := demo_range(source, DEMO_MARKETS):
        return _demo(*demo, seed, goods)
    path = Path(source)
    if not path.exists():
        raise DataError("no such file or folder; give a table, a folder of tables, or 'demo'", path)
    markets, described = _folder(path) if path.is_dir() else _file(path)
    own = catalogue_of(path) if path.is_dir() else None
    return to_dataset(markets, goods or (read_catalogue(own) if own else None), described, path)


def tables_of(folder: Path) -> list[Path]:
    """The plain tables of a folder, each of which is a market, in the order of their names; its catalogue is none."""
    return [file for file in tables_in(folder, TABLES) if not is_catalogue(file)]


def _demo(start: int, stop: int, seed: int, goods: MarketCatalogue | None) -> Markets:
    if goods is not None and goods != demo_market_catalogue():
        raise VocabularyError("the demo markets sell the demo's items, the federation others; give your own data")
    if stop > DEMO_MARKETS:
        raise DataError(f"demo:{start}-{stop}: there are {DEMO_MARKETS} made markets; name fewer")
    return Markets(demo_markets(start, stop, seed), demo_market_catalogue())


def _file(path: Path) -> tuple[dict[str, Records], list[Product]]:
    """A single market, published or not."""
    if suffix_of(path) in (".json", ".jsonl"):
        return _with_metadata({}, {_market_of(path, METADATA): path})
    return read_market(path, _market_of(path, RATINGS)), []


def _folder(path: Path) -> tuple[dict[str, Records], list[Product]]:
    """All markets of a folder, and what it says of the goods."""
    ratings, metadata = named(path, RATINGS), named(path, METADATA)
    if not ratings and not metadata:
        ratings = {name_of(file): file for file in tables_of(path)}
    if not ratings and not metadata:
        raise DataError(
            f"the folder holds no market ({', '.join(TABLES)}, or XMarket's files); name a file in it", path
        )
    markets: dict[str, Records] = {}
    for name, file in ratings.items():
        for market, records in read_market(file, name).items():
            into = markets.setdefault(market, Records())
            into.ratings += records.ratings
            into.pairs += records.pairs
    return _with_metadata(markets, metadata)


def _with_metadata(markets: dict[str, Records], metadata: dict[str, Path]) -> tuple[dict[str, Records], list[Product]]:
    described: list[Product] = []
    for name, file in metadata.items():
        listed = list(read_metadata(file))
        lists = [(product.item, other) for product in listed for other in product.related]
        markets = {**markets, name: Records(markets.get(name, Records()).ratings, lists)}
        described += listed
    return markets, described


def _market_of(path: Path, patterns: tuple[str, ...]) -> str:
    matches = (re.fullmatch(pattern, plain_name(path)) for pattern in patterns)
    return next((match[1] for match in matches if match), name_of(path))
