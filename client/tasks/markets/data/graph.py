"""Graph of a market's items, weighted, undirected and sparse; its counts for sums, and its split.

The split depends on (seed, name) alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, triu

from client.data.dataset import floor_share, own_rng
from client.tasks.markets.data.markets import Market, Markets, Pairs
from common.arrays import Arrays, Floats, Floats32, Ints
from common.errors import DataError
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.pairs import counts_of
from common.text import count

Sparse = csr_array[Any, tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Graph:
    """Graph of the items of a market that go together.

    Args:
        items: The n items, ascending numbers of the catalogue.
        weights: n × n, symmetric, zero diagonal; how many users an edge stands for, 1 where that is unknown.
    """

    items: Ints
    weights: Sparse

    @property
    def edges(self) -> Pairs:
        """Each edge once, E × 2 with a < b, places in `items`."""
        rows = np.repeat(np.arange(len(self.items)), np.diff(self.weights.indptr))
        upper = rows < self.weights.indices
        return np.stack([rows[upper], self.weights.indices[upper].astype(np.int64)], axis=1)

    def without(self, edges: Pairs) -> "Graph":
        """Return the graph without some edges, given as places in `items`; all items stay."""
        gone = symmetric(edges, np.ones(len(edges), np.float32), len(self.items))
        remaining = self.weights - self.weights.multiply(gone > 0)
        left = csr_array(remaining)
        left.eliminate_zeros()
        return Graph(self.items, left)

    def among(self, items: Ints) -> "Graph":
        """Return the same edges among more items, ascending, which include its own."""
        places = np.searchsorted(items, self.items)
        edges = self.weights.tocoo()
        ends = places[edges.coords[0]], places[edges.coords[1]]
        return Graph(items, csr_array((edges.data, ends), shape=(len(items), len(items))))


def graph_of(market: Market, least: int) -> Graph:
    """Return the market's lists or, without any, pairs rated by at least `least` of the same users."""
    if market.listed:
        edges, counts = market.pairs, np.ones(len(market.pairs), np.float32)
    else:
        edges, counts = co_rated(market.ratings, least)
    items, places = np.unique(edges, return_inverse=True)
    return Graph(items, symmetric(places.reshape(-1, 2), counts, len(items)))


def co_rated(ratings: Pairs, least: int) -> tuple[Pairs, Floats32]:
    """Return pairs of items with at least `least` users in common, P × 2 with a < b, and their number, P."""
    if not len(ratings):
        return ratings, np.zeros(0, np.float32)
    items, places = np.unique(ratings[:, 1], return_inverse=True)
    rated = csr_array((np.ones(len(ratings), np.float32), (ratings[:, 0], places)))
    counts = csr_array(rated.T @ rated)
    counts.sort_indices()
    rows = np.repeat(np.arange(len(items)), np.diff(counts.indptr))
    is_edge = (rows < counts.indices) & (counts.data >= least)
    return np.stack([items[rows[is_edge]], items[counts.indices[is_edge]]], axis=1), counts.data[is_edge]


def symmetric(edges: Pairs, weights: Floats32, size: int) -> Sparse:
    """Return a size × size matrix with weights at (a, b) and (b, a)."""
    ends = np.concatenate([edges, edges[:, ::-1]])
    data: Floats32 = np.concatenate([weights, weights])
    matrix: Sparse = csr_array((data, (ends[:, 0], ends[:, 1])), shape=(size, size))
    matrix.sort_indices()
    return matrix


def normalised(weights: Sparse) -> Sparse:
    """Return S = D^-1/2 (A + I) D^-1/2 with degrees D of A + I (Eq 3); eigenvalues are in [−1, 1]."""
    with_self = weights + eye_array(weights.shape[0], dtype=np.float32)
    scale = diags_array(1 / np.sqrt(np.asarray(with_self.sum(axis=1)).ravel()))
    return csr_array(scale @ with_self @ scale)


def propagated(weights: Sparse, features: Floats32, hops: int) -> Floats32:
    """Return S^m X, n × width, which SGC multiplies by W; it is computed once per market."""
    S, X = normalised(weights).astype(np.float32), features
    for _ in range(hops):
        X = np.asarray(S @ X, np.float32)
    return X


MOST = 8
"""Items of one user that count, where that is bounded."""


def graph_counts(graph: Graph, items: int) -> Arrays:
    """Return the edge weights and the degrees of a graph's items, out of `items` = V items."""
    degrees = np.zeros(items)
    degrees[graph.items] = np.diff(graph.weights.indptr)
    values = csr_array(triu(graph.weights)).data
    return counts_of(graph.items[graph.edges], values, degrees, items)


def bounded_counts(ratings: Pairs, items: int, rng: np.random.Generator) -> Arrays:
    """Return counts to which any one user adds a vector of L2 norm 1 at most.

    At most `MOST` of a user's items count, drawn at random. All that they add, to each pair and to each item, is
    1/√(pairs + items). No threshold on co-ratings applies: whether a pair reaches it would depend on other users.

    Args:
        ratings: Each (user, item) once.
        items: V.
        rng: Draws the items.

    Raises:
        DataError: The market has no users.
    """
    if not len(ratings):
        raise DataError("pairs of items name no users whose part can be bounded; set tasks.markets.bound-users=false")
    counted = _drawn(ratings, rng)
    counts = np.bincount(counted[:, 0])[counted[:, 0]]
    shares = 1 / np.sqrt(counts * (counts + 1) / 2)  # k items and k(k−1)/2 pairs
    pairs, values = _pairs(counted, shares, items)
    return counts_of(pairs, values, np.bincount(counted[:, 1], shares, items), items)


def _drawn(ratings: Pairs, rng: np.random.Generator) -> Pairs:
    """Return at most `MOST` rows per user, ordered by users and items."""
    shuffled = ratings[rng.permutation(len(ratings))]
    shuffled = shuffled[np.argsort(shuffled[:, 0], kind="stable")]
    first = np.searchsorted(shuffled[:, 0], shuffled[:, 0])
    drawn = shuffled[np.arange(len(shuffled)) - first < MOST]
    return drawn[np.lexsort((drawn[:, 1], drawn[:, 0]))]


def _pairs(ratings: Pairs, shares: Floats, items: int) -> tuple[Pairs, Floats]:
    """Return pairs of items with a common user, P × 2, and their weights summed over users, P."""
    keys, values = [], []
    for apart in range(1, MOST):
        same = (
            np.flatnonzero(ratings[apart:, 0] == ratings[:-apart, 0]) if apart < len(ratings) else np.zeros(0, np.int64)
        )
        keys.append(ratings[same, 1] * items + ratings[same + apart, 1])
        values.append(shares[same])
    distinct, pair_of = np.unique(np.concatenate(keys), return_inverse=True)
    sums: Floats = np.bincount(pair_of, np.concatenate(values), len(distinct)).astype(np.float64)
    return np.stack([distinct // items, distinct % items], axis=1).astype(np.int64), sums


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
    held, left = [], whole
    for what, share in shares.items():
        protocol = "pairs" if (what, options.protocol) == ("fit", "cold") else options.protocol
        left = _held_out(left, protocol, share, own_rng(seed, f"{what} of {market.name}"))
        held.append(left)
    return SplitMarket(market, *held)


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


MOST_PAIRLESS = 0.5
"""Share of a market's items without a pair from which on it is worth saying."""


def warn(options: MarketsOptions, dataset: Markets) -> Iterator[str]:
    """Yield what the owner should know about markets before training."""
    yield from _pairless(dataset.units, options)


def _pairless(markets: Sequence[Market], options: MarketsOptions) -> Iterator[str]:
    """Yield a warning of markets of ratings most of whose items are in no pair."""
    pairless, least = [], least_users(options)
    for market in markets:
        sold, paired = len(np.unique(market.ratings[:, 1])), len(graph_of(market, least).items)
        if not market.listed and sold - paired > MOST_PAIRLESS * sold:
            pairless.append(
                f"{sold - paired:,} of {count(sold, 'item')} in {market.name} ({count(len(market.ratings), 'rating')})"
            )
    if pairless:
        needed = f"a pair of items needs {count(least, 'user')} of both (tasks.markets.co-rating)"
        yield f"{needed}: {', '.join(pairless)} have none, so nothing is trained on or measured of those"
