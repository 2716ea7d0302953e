"""The catalogue of the embedded demo markets: what an invented department store sells, with titles and descriptions."""

from functools import cache

from common.tasks.demo_store import SHELVES
from common.tasks.markets.vocabulary import MarketCatalogue


@cache
def demo_goods() -> MarketCatalogue:
    """The demo's catalogue, shelf by shelf; on a shelf, kind by kind."""
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
    """Items of a set, things of one kind on one shelf; all sets are of the same size, one after the other."""
    return len(next(iter(SHELVES.values()))[1].split(", "))
