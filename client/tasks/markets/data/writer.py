"""Markets as a table."""

from collections.abc import Iterable
from pathlib import Path

from client.data.tables.writer import private_csv
from client.tasks.markets.data.markets import Market
from common.tasks.markets.vocabulary import MarketCatalogue


def write_markets(path: Path, markets: Iterable[Market], goods: MarketCatalogue) -> None:
    """Write markets as CSV, readable by the owner only; `read_markets` with the catalogue inverts it.

    A row is a rating or a pair of items; the cells of the other are empty. A market with neither is a row with its name.
    """
    with private_csv(path) as writer:
        writer.writerow(("market", "user", "item", "item_a", "item_b"))
        for market in markets:
            if not len(market.ratings) and not len(market.pairs):
                writer.writerow((market.name, "", "", "", ""))
            ids = goods.items
            writer.writerows((market.name, f"{user:09d}", ids[item], "", "") for user, item in market.ratings.tolist())
            writer.writerows((market.name, "", "", ids[a], ids[b]) for a, b in market.pairs.tolist())
