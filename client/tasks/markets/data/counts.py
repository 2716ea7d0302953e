"""Counts that a market adds to the federated sums: users of each pair of items, and of each item."""

import numpy as np
from scipy.sparse import csr_array, triu
from scipy.special import ndtr, ndtri

from client.tasks.markets.data.graph import Graph
from client.tasks.markets.data.markets import Pairs
from common.arrays import Arrays, Floats, Ints
from common.errors import DataError
from common.tasks.markets.counts import DEGREES, KEYS, VALUES, counts_of

MOST = 8
"""Items of one user that count, where that is bounded."""

PASSING = 4.5
"""Threshold of released counts, in standard deviations: of 30 million empty pairs about 100 pass."""


def graph_counts(graph: Graph, items: int) -> Arrays:
    """Return the edge weights and the degrees of a graph's items, out of `items` = V items."""
    degrees = np.zeros(items)
    degrees[graph.items] = np.diff(graph.weights.indptr)
    values = csr_array(triu(graph.weights)).data
    return counts_of(graph.items[graph.edges], values, degrees, items)


def bounded_counts(ratings: Pairs, items: int, rng: np.random.Generator, exact: type = np.float32) -> Arrays:
    """Return counts to which any one user adds a vector of L2 norm 1 at most.

    At most `MOST` of a user's items count, drawn at random. All that they add, to each pair and to each item, is
    1/√(pairs + items). No threshold on co-ratings applies: whether a pair reaches it would depend on other users.

    Args:
        ratings: Each (user, item) once.
        items: V.
        rng: Draws the items.
        exact: Type of the counts; float64 where noise is to hide a user.

    Raises:
        DataError: The market has no users.
    """
    if not len(ratings):
        raise DataError("pairs of items name no users whose part can be bounded; set tasks.markets.bound-users=false")
    kept = _drawn(ratings, rng)
    counts = np.bincount(kept[:, 0])[kept[:, 0]]
    shares = 1 / np.sqrt(counts * (counts + 1) / 2)  # k items and k(k−1)/2 pairs
    pairs, values = _pairs(kept, shares, items)
    return counts_of(pairs, values, np.bincount(kept[:, 1], shares, items), items, exact)


def noised(counts: Arrays, items: int, noise: float, rng: np.random.Generator) -> Arrays:
    """Add N(0, noise²) to every pair and item of the catalogue; keep what exceeds `PASSING` · noise.

    All pairs are noised, also those that nobody has, since their absence would tell. Those are too many to draw one by one:
    drawn are how many of them pass, which, and how high, which is the same in distribution.

    Args:
        counts: As `bounded_counts` makes them, in float64: a rounded large count moves by more than its user's share.
        items: V.
        noise: Standard deviation.
        rng: Draws the noise.
    """
    least = PASSING * noise
    values = counts[VALUES] + noise * rng.standard_normal(len(counts[VALUES]))
    degrees = counts[DEGREES] + noise * rng.standard_normal(items)
    strangers = _strangers(counts[KEYS], items, rng)
    heights = -noise * ndtri(ndtr(-PASSING) * rng.random(len(strangers)))
    keys = np.concatenate([counts[KEYS][values > least], strangers])
    order = np.argsort(keys)
    pairs = np.stack([keys // items, keys % items], axis=1)[order]
    return counts_of(
        pairs, np.concatenate([values[values > least], heights])[order], np.where(degrees > least, degrees, 0), items
    )


def _strangers(keys: Ints, items: int, rng: np.random.Generator) -> Ints:
    """Sample keys of pairs without users that exceed the threshold by noise alone."""
    wanted = rng.binomial(items * (items - 1) // 2 - len(keys), ndtr(-PASSING))
    found: Ints = np.zeros(0, np.int64)
    while len(found) < wanted:
        a, b = np.sort(rng.integers(items, size=(2, wanted)), axis=0)
        found = np.setdiff1d(np.union1d(found, (a * items + b)[a < b]), keys)
    return rng.permutation(found)[:wanted]


def _drawn(ratings: Pairs, rng: np.random.Generator) -> Pairs:
    """Return at most `MOST` rows per user, ordered by users and items."""
    shuffled = ratings[rng.permutation(len(ratings))]
    shuffled = shuffled[np.argsort(shuffled[:, 0], kind="stable")]
    first = np.searchsorted(shuffled[:, 0], shuffled[:, 0])
    kept = shuffled[np.arange(len(shuffled)) - first < MOST]
    return kept[np.lexsort((kept[:, 1], kept[:, 0]))]


def _pairs(kept: Pairs, shares: Floats, items: int) -> tuple[Pairs, Floats]:
    """Return pairs of items with a common user, P × 2, and their weights summed over users, P."""
    keys, values = [], []
    for apart in range(1, MOST):
        same = np.flatnonzero(kept[apart:, 0] == kept[:-apart, 0]) if apart < len(kept) else np.zeros(0, np.int64)
        keys.append(kept[same, 1] * items + kept[same + apart, 1])
        values.append(shares[same])
    distinct, place = np.unique(np.concatenate(keys), return_inverse=True)
    sums: Floats = np.bincount(place, np.concatenate(values), len(distinct)).astype(np.float64)
    return np.stack([distinct // items, distinct % items], axis=1).astype(np.int64), sums
