"""Split of a market into training and held-out data by (seed, name), with warnings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from client.data.partition import floor_share, own_rng
from client.tasks.markets.data.graph import Graph, Sparse, co_rated, graph_of, symmetric
from client.tasks.markets.data.markets import Market, Markets, Pairs
from common.errors import DataError
from common.tasks.markets.options import MarketsOptions
from common.text import count


@dataclass(frozen=True, eq=False)
class Held:
    """Held-out part of a market, and the graph without it.

    Args:
        graph: Graph without it.
        right: n × n, row a holding the right answers of query a.
        ratings: Those that `graph` was made of; none where the market brings lists.
    """

    graph: Graph
    right: Sparse
    ratings: Pairs


@dataclass(frozen=True, eq=False)
class SplitMarket:
    """Market in parts, each held out of the rest of the one before: test, validation, and fit.

    Args:
        market: Whole.
        test: Held out of the whole.
        validation: Held out of the rest; its graph is the training graph.
        fit: What a scorer is asked while it trains, held out of the training graph: pairs, where items are held out.
    """

    market: Market
    test: Held
    validation: Held
    fit: Held

    @property
    def graph(self) -> Graph:
        """The training graph; its items are all that have a pair in the whole market."""
        return self.validation.graph

    def right(self, split: str) -> Sparse:
        """Right answers of a split, `test` or `validation`."""
        return self.test.right if split == "test" else self.validation.right


def split_market(market: Market, options: MarketsOptions, seed: int) -> SplitMarket:
    """Hold out pairs, users or items, as `options.protocol` says.

    The test part depends on neither of the other shares. All parts are over the same items.

    Raises:
        DataError: Users are to be held out, and the market has none.
    """
    if options.protocol == "users" and market.listed:
        raise DataError("pairs of items name no users to hold out; set tasks.markets.protocol to pairs or cold")
    whole = Held(graph_of(market, least_users(options)), csr_array((0, 0)), market.ratings)
    shares = {"test": options.test_share, "validation": options.validation_share, "fit": options.fit_share}
    parts, left = [], whole
    for what, share in shares.items():
        protocol = "pairs" if (what, options.protocol) == ("fit", "cold") else options.protocol
        left = _held_out(left, protocol, share, own_rng(seed, f"{what} of {market.name}"))
        parts.append(left)
    return SplitMarket(market, *parts)


def least_users(options: MarketsOptions) -> int:
    """Return the number of common users that makes an edge of a market with ratings."""
    return 1 if options.protocol == "users" else options.co_rating


def _held_out(left: Held, protocol: str, share: float, rng: np.random.Generator) -> Held:
    match protocol:
        case "pairs":
            return _pairs_out(left, share, rng)
        case "users":
            return _users_out(left, share, rng)
        case _:
            return _items_out(left, share, rng)


def _pairs_out(left: Held, share: float, rng: np.random.Generator) -> Held:
    """Hold out undirected pairs at random; either end is a query for the other."""
    edges = left.graph.edges
    held = edges[rng.permutation(len(edges))[: floor_share(share, len(edges))]]
    return replace(left, graph=left.graph.without(held), right=_both_ways(held, left))


def _items_out(left: Held, share: float, rng: np.random.Generator) -> Held:
    """Hold out all edges of some items with edges, which alone are queries."""
    active = np.flatnonzero(np.diff(left.graph.weights.indptr))
    cold = np.zeros(len(left.graph.items), bool)
    cold[rng.permutation(active)[: floor_share(share, len(active))]] = True
    edges = left.graph.edges
    held = edges[cold[edges].any(axis=1)]
    right = _both_ways(held, left)
    rows = np.repeat(np.arange(len(cold)), np.diff(right.indptr))
    right.data = np.where(cold[rows], right.data, 0)
    right.eliminate_zeros()
    return replace(left, graph=left.graph.without(held), right=right)


def _users_out(left: Held, share: float, rng: np.random.Generator) -> Held:
    """Hold out random users; their pairs that no other user has are the queries."""
    users = np.unique(left.ratings[:, 0])
    gone = np.isin(left.ratings[:, 0], rng.permutation(users)[: floor_share(share, len(users))])
    graph = _over(left.graph, left.ratings[~gone])
    theirs = _over(left.graph, left.ratings[gone])
    new = theirs.without(graph.edges).edges
    return Held(graph, _both_ways(new, left), left.ratings[~gone])


def _over(graph: Graph, ratings: Pairs) -> Graph:
    """Return the co-rating graph of all pairs, over the items of `graph`."""
    pairs, counts = co_rated(ratings, 1)
    places = np.searchsorted(graph.items, pairs)
    return Graph(graph.items, symmetric(places, counts, len(graph.items)))


def _both_ways(edges: Pairs, left: Held) -> Sparse:
    return symmetric(edges, np.ones(len(edges), np.float32), len(left.graph.items))


MOST = 0.5
"""Share of a market's items without a pair from which on it is worth saying."""


def warn(options: MarketsOptions, dataset: Markets) -> Iterator[str]:
    """Yield what the owner should know about markets before training."""
    yield from _pairless(dataset.units, options)
    yield from _unshared(dataset.units, options)


def _pairless(markets: Sequence[Market], options: MarketsOptions) -> Iterator[str]:
    """Yield a warning of markets of ratings most of whose items are in no pair."""
    pairless, least = [], least_users(options)
    for market in markets:
        sold, paired = len(np.unique(market.ratings[:, 1])), len(graph_of(market, least).items)
        if not market.listed and sold - paired > MOST * sold:
            pairless.append(
                f"{sold - paired:,} of {count(sold, 'item')} in {market.name} ({count(len(market.ratings), 'rating')})"
            )
    if pairless:
        needed = f"a pair of items needs {count(least, 'user')} of both (tasks.markets.co-rating)"
        yield f"{needed}: {', '.join(pairless)} have none, so nothing is trained on or measured of those"


def _unshared(markets: Sequence[Market], options: MarketsOptions) -> Iterator[str]:
    """Yield a warning of markets whose counts are not shared because of noise."""
    names = [market.name for market in markets if market.listed]
    if names and options.count_offset and options.count_epsilon:
        yield (
            f"lists in {', '.join(names)} name no users whom noise could hide, so their counts are not shared: a run with"
            " --set tasks.markets.count-epsilon=0 shares them in plaintext where each client's policy has allow-counts"
        )
