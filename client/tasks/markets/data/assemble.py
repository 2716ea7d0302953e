"""Conversion of records by name to markets under a catalogue, for all forms."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from client.tasks.markets.data.markets import Market, Markets, Pairs, as_pairs, as_ratings
from client.tasks.markets.data.published_folder import Product
from client.tasks.markets.data.records import Records
from common.arrays import Flags, Ints
from common.errors import DataError
from common.tasks.markets.vocabulary import MarketCatalogue

ABSENT = -1


def to_dataset(
    markets: Mapping[str, Records], goods: MarketCatalogue | None, described: Sequence[Product], path: Path
) -> Markets:
    """Return the markets under the catalogue `goods`; None for the catalogue of all their items.

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
    """Return the described items, or else all named items, by name, with their longest texts."""
    titles: dict[str, str] = {}
    descriptions: dict[str, str] = {}
    for product in described:
        for texts, text in ((titles, product.title), (descriptions, product.description)):
            texts[product.item] = max(texts.get(product.item, ""), text, key=len)
    named = {
        records.items[code]
        for records in markets.values()
        for rows in ((records.ratings[:, 1],) if described else (records.ratings[:, 1], records.pairs))
        for code in np.unique(rows).tolist()
    }
    items = sorted(named | set(titles))
    return goods_of(items, [(titles.get(item, ""), descriptions.get(item, "")) for item in items] or [("", "")])


def goods_of(items: Sequence[str], texts: Sequence[tuple[str, str]]) -> MarketCatalogue:
    """Return a catalogue of items and their (title, description); lists that hold nothing are left out."""
    titles, descriptions = (tuple(column) if any(column) else () for column in zip(*texts, strict=True))
    return MarketCatalogue(items=tuple(items), titles=titles, descriptions=descriptions)


def _numbered(name: str, records: Records, place: Mapping[str, int], path: Path) -> tuple[Market, list[str]]:
    places = np.full(len(records.items), ABSENT)
    for code in np.unique(np.concatenate([records.ratings[:, 1], records.pairs.ravel()])).tolist():
        places[code] = place.get(records.items[code], ABSENT)
    ratings = np.stack([_by_appearance(records.ratings[:, 0]), places[records.ratings[:, 1]]], axis=1)
    rated, linked = _inside(ratings), _inside(places[records.pairs])
    rows = len(ratings) + len(records.pairs)
    strange = rows - len(rated) - len(linked)
    if rows and strange == rows:
        raise DataError(f"none of its {rows} rows is about items of the catalogue; are they of this federation?", path)
    market = Market(name, as_ratings(rated), as_pairs(linked))
    return market, [f"market {name}: {note}" for note in _notes(market, linked, strange, rated)]


def _by_appearance(code: Ints) -> Ints:
    """Return codes numbered in the order of their first appearance."""
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[place], np.int64)


def _inside(rows: Pairs) -> Pairs:
    """Return the rows with items of the catalogue; no user number is missing."""
    inside: Flags = (rows != ABSENT).all(axis=1)
    return rows[inside]


def _notes(market: Market, linked: Pairs, strange: int, rated: Pairs) -> Iterator[str]:
    """Yield notes on what was left out, and on edges."""
    if strange:
        yield f"{strange} rows skipped: items that the catalogue lacks"
    if selves := int((linked[:, 0] == linked[:, 1]).sum()):
        yield f"{selves} pairs of an item with itself skipped"
    if repeated := len(linked) - selves - len(market.pairs):
        yield f"{repeated} pairs named more than once (either way round) count once"
    if repeated := len(rated) - len(market.ratings):
        yield f"{repeated} ratings of the same item by the same user count once"
    if market.listed and len(market.ratings):
        yield "ratings are not used, since there are lists of items that go together"


def _rated(markets: Sequence[Market]) -> Iterator[str]:
    """Yield a note on the edges of markets without lists."""
    names = [market.name for market in markets if not market.listed]
    if names:
        yield (
            f"no lists of items that go together in {', '.join(names)}: an edge is a pair rated by the same users, as many as"
            " tasks.markets.co-rating says"
        )


def _alone(markets: Sequence[Market]) -> Iterator[str]:
    """Return the markets that share no item with any other; parameters of items cannot transfer to them."""
    sold = [{*market.ratings[:, 1].tolist(), *market.pairs.ravel().tolist()} for market in markets]
    for k, market in enumerate(markets):
        others: set[int] = set().union(*(items for j, items in enumerate(sold) if j != k))
        if len(markets) > 1 and sold[k].isdisjoint(others):
            yield f"market {market.name} sells nothing that another market here sells"
