"""From markets under the names of their source to markets under a catalogue; the half that all forms share."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.tasks.markets.data.markets import Market, Markets, Pairs, as_pairs, as_ratings, no_rows
from client.tasks.markets.data.plain import Named, Records, goods_of
from client.tasks.markets.data.published_folder import Product
from common.errors import DataError
from common.tasks.markets.vocabulary import MarketCatalogue

ABSENT = -1


def to_dataset(
    markets: Mapping[str, Records], goods: MarketCatalogue | None, described: Sequence[Product], path: Path
) -> Markets:
    """Markets under the catalogue `goods` or, without one, under that of everything they name.

    Args:
        markets: By name.
        goods: The catalogue.
        described: What published metadata say of items.
        path: Named in errors.

    Raises:
        DataError: A market has no row whose items the catalogue knows.
    """
    goods = goods or _catalogue(markets, described)
    place = {item: k for k, item in enumerate(goods.items)}
    numbered, notes = [], []
    for name, records in sorted(markets.items()):
        market, own = _numbered(name, records, place, path)
        numbered.append(market)
        notes += own
    return Markets(tuple(numbered), goods, (*notes, *_rated(numbered), *_alone(numbered)))


def _catalogue(markets: Mapping[str, Records], described: Sequence[Product]) -> MarketCatalogue:
    """Items that metadata describe, or else those that anybody names; by name, with the longest texts there are."""
    titles: dict[str, str] = {}
    descriptions: dict[str, str] = {}
    for product in described:
        for texts, text in ((titles, product.title), (descriptions, product.description)):
            texts[product.item] = max(texts.get(product.item, ""), text, key=len)
    named = {item for records in markets.values() for _, item in records.ratings}
    if not described:
        named |= {item for records in markets.values() for pair in records.pairs for item in pair}
    items = sorted(named | set(titles))
    return goods_of(items, [(titles.get(item, ""), descriptions.get(item, "")) for item in items] or [("", "")])


def _numbered(name: str, records: Records, place: Mapping[str, int], path: Path) -> tuple[Market, list[str]]:
    users: dict[str, int] = {}
    ratings = _rows([(users.setdefault(user, len(users)), place.get(item, ABSENT)) for user, item in records.ratings])
    pairs = _rows([(place.get(a, ABSENT), place.get(b, ABSENT)) for a, b in records.pairs])
    known, linked = _inside(ratings), _inside(pairs)
    rows = len(ratings) + len(pairs)
    strange = rows - len(known) - len(linked)
    if rows and strange == rows:
        raise DataError(f"none of its {rows} rows is about items of the catalogue; are they of this federation?", path)
    market = Market(name, as_ratings(known), as_pairs(linked))
    return market, [f"market {name}: {note}" for note in _notes(market, records.pairs, linked, strange, known)]


def _rows(rows: Sequence[tuple[int, int]]) -> Pairs:
    return np.array(rows, np.int64) if rows else no_rows()


def _inside(rows: Pairs) -> Pairs:
    """Rows of the catalogue's items; user numbers are never absent."""
    inside: NDArray[np.bool_] = (rows != ABSENT).all(axis=1)
    return rows[inside]


def _notes(market: Market, pairs: Named, linked: Pairs, strange: int, known: Pairs) -> Iterator[str]:
    """What was left out, in numbers, and what an edge is."""
    if strange:
        yield f"{strange} rows skipped: items that the catalogue lacks"
    if selves := int((linked[:, 0] == linked[:, 1]).sum()):
        yield f"{selves} pairs of an item with itself skipped"
    if repeated := len(linked) - selves - len(market.pairs):
        yield f"{repeated} pairs named more than once (either way round) count once"
    if repeated := len(known) - len(market.ratings):
        yield f"{repeated} ratings of the same item by the same user count once"
    if market.listed and len(market.ratings):
        yield "ratings are not used, since there are lists of items that go together"


def _rated(markets: Sequence[Market]) -> Iterator[str]:
    """What an edge is where nobody lists any."""
    names = [market.name for market in markets if not market.listed]
    if names:
        yield (
            f"no lists of items that go together in {', '.join(names)}: an edge is a pair rated by the same users, as many as"
            " tasks.markets.co-rating says"
        )


def _alone(markets: Sequence[Market]) -> Iterator[str]:
    """Markets that share no item with any other: nothing that is about items can carry over."""
    sold = [{*market.ratings[:, 1].tolist(), *market.pairs.ravel().tolist()} for market in markets]
    for k, market in enumerate(markets):
        others: set[int] = set().union(*(items for j, items in enumerate(sold) if j != k))
        if len(markets) > 1 and sold[k].isdisjoint(others):
            yield f"market {market.name} sells nothing that another market here sells"
