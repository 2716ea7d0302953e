"""Vocabulary of the generated demo markets: products with titles and descriptions."""

from functools import cache

from common.tasks.demo_store import SHELVES
from common.tasks.markets.vocabulary import MarketCatalogue


@cache
def demo_market_catalogue() -> MarketCatalogue:
    """Return the demo's catalogue, shelf by shelf; on a shelf, kind by kind."""
    titles, descriptions = [], []
    for shelf, (kinds, things) in SHELVES.items():
        for kind in kinds.split(", "):
            for thing in things.split(", "):
                titles.append(f"{kind[0].upper()}{kind[1:]} {thing}")
                descriptions.append(
                    f"From our {shelf} shelf: {thing}, {kind}. Goes with everything {kind} for {shelf}."
                )
    ids = tuple(f"P{number:04d}" for number in range(1, len(titles) + 1))
    return MarketCatalogue(items=ids, titles=tuple(titles), descriptions=tuple(descriptions))


def set_size() -> int:
    """Return the number of items of a set (one kind on one shelf); sets are consecutive and of equal size."""
    return len(next(iter(SHELVES.values()))[1].split(", "))
