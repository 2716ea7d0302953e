"""Markets in closed form: summed users of pairs, and ridge weights of the features of a pair.

Seven sums: the items that have a pair; the users of each pair of them, and of each item; four times, gradient and Hessian
of the ranking loss; ranking metrics.

A pair's score is w·x over the features `BLENDED`: those of the default scorer, and EASE (Steck 2019, arXiv 1905.03375) of a
market's graph. Its rows are log counts of norm 1, and the summed counts of the other markets are its prior. A market inverts
the matrix of its own items, so the model is its own, and new markets have one too.

w minimizes the cross-entropy of the right candidate plus λ/2·Σ_f D_f (w_f − w⁰_f)². w⁰ is the own walk, and popularity
for new items; D is the diagonal of the Hessian at w⁰. Four Newton steps are enough: more change no metric. Clients choose
λ, or w⁰ or popularity instead, by pairs that they hide from themselves, apart for queries with pairs and for new ones.

A market whose query items are n has weight √n in the last five sums, so that no large market decides alone. A user adds at
most 1 to a pair, and with `bound-users` a vector of norm 1 to all counts.

Under noise there is one sum, of degrees scaled to norm 1 for each market: popularity, which ranks for new items.
"""

import numpy as np

from common.arrays import Array, Arrays, Floats, Floats32, Ints
from common.errors import WireError
from common.tasks.closed_form import Entries, RowNames, check_ids, check_sizes, choose_used, ends_of, first_size
from common.tasks.markets.pairs import (
    COLD_FEATURES,
    DEGREES,
    GRAPH_FEATURES,
    KEYS,
    MIN_COUNT,
    VALUES,
    check_pairs,
    counts_of,
)
from common.tasks.markets.vocabulary import MarketCatalogue
from common.wire.sparse_rows import named_rows

USED, PAIRS, GRADIENT, HESSIAN, QUALITY, POPULAR = (
    *("blend_used", "blend_pairs", "blend_gradient"),
    *("blend_hessian", "blend_quality", "blend_popular"),
)
"""Statistics of a client: items; users of pairs; derivatives of the loss; metrics; degrees."""

SIZES, ITEMS, STRENGTHS, CANDIDATES, SCALE, STEPS, WEIGHTS = (
    *("blend_sizes", "blend_items", "blend_strengths"),
    *("blend_candidates", "blend_scale", "blend_steps", "blend_weights"),
)
"""Solution: V, 1 under noise, largest V; items of pairs; each λ; its w; D; number of Newton steps; w."""

BLENDED = (*GRAPH_FEATURES, "ease", *COLD_FEATURES)
"""The F features of a pair; those of one of the two groups are zero for a query without or with pairs."""

FIRST_COLD = len(BLENDED) - len(COLD_FEATURES)
"""Index of the first feature of queries without pairs."""

CHOICES = (0.003, 0.01, 0.03, 0.1)
"""Values of λ from which clients choose."""

NEWTON_STEPS = 4

START = {"walk": 1.0, "new_degree": 1.0}
"""w⁰: the walk, and popularity for new queries."""

POPULARITY = {"degree": 1.0, "new_degree": 1.0}
"""Weights of a ranking by popularity."""

MOST_ITEMS = 4000
"""Largest number V of items whose pairs are summed; of more, those of most markets.

The sum takes 4·V² bytes.
"""

MOST_MASKED_ITEMS = 2_800
"""Largest V in secure sums."""


LASTING = {
    **dict.fromkeys((USED, POPULAR), RowNames(first_size(SIZES))),
    PAIRS: RowNames(first_size(SIZES), chosen=ITEMS, pairs="unordered"),
}
"""Sums that other runs continue."""


def sizes(catalogue: MarketCatalogue, noised: bool) -> Arrays:
    """Return what is known before the first sum."""
    return {SIZES: np.array([len(catalogue.items), noised, MOST_ITEMS], np.int64)}


ENTRIES = {USED: Entries(0, 1), PAIRS: Entries(), QUALITY: Entries()}
"""Ranges of statistics; see `ClosedForm.entries`."""


def is_solved(statics: Arrays) -> bool:
    """Return True if pairs can be scored."""
    return WEIGHTS in statics


def check(solved: Arrays, catalogue: MarketCatalogue, *, noised: bool) -> None:
    """Check that what a server has solved belongs to a vocabulary.

    Raises:
        WireError: Sizes differ, or arrays do not fit each other.
    """
    check_sizes(solved.get(SIZES, np.zeros(0)), sizes(catalogue, noised)[SIZES])
    check_ids(solved.get(ITEMS, np.zeros(0, np.int64)), MOST_ITEMS, len(catalogue.items), "items")
    if KEYS in solved:
        check_pairs({name: solved.get(name, np.zeros(0)) for name in (KEYS, VALUES, DEGREES)}, len(catalogue.items))
    candidates = solved.get(CANDIDATES, _weights(START)[None])
    if candidates.ndim != 2 or candidates.shape[1] != len(BLENDED) or len(candidates) > len(CHOICES):
        raise WireError("the server's weights do not fit the features of pairs")


def template(solved: Arrays) -> Arrays:
    """Return zeros of a client's next statistics.

    They are V items, V(V + 1)/2 pairs, derivatives by λ, then metrics of each choice for queries with and without pairs.
    Items and pairs are tables of one column, of which a client sends the rows that it has.
    """
    size, noised, _ = solved[SIZES].tolist()
    if ITEMS not in solved:
        return {POPULAR if noised else USED: np.zeros((size, 1), np.float32)}
    if CANDIDATES not in solved:
        size = len(solved[ITEMS])
        return {PAIRS: np.zeros((size * (size + 1) // 2, 1), np.float32)}
    count, features = solved[CANDIDATES].shape
    if int(solved[STEPS].item()) < NEWTON_STEPS:
        shapes = {GRADIENT: (count, features + 1), HESSIAN: (count, features, features)}
        return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    return {QUALITY: np.zeros((2, count + 2), np.float32)}


def used(degrees: Floats32) -> Arrays:
    """Return the items of a client's pairs, from the users of each of the V items."""
    return _column(USED, np.flatnonzero(degrees > MIN_COUNT), None)


def popular(degrees: Floats32) -> Arrays:
    """Return a client's degrees with norm 1, the statistic under noise."""
    ids = np.flatnonzero(degrees > MIN_COUNT)
    return _column(POPULAR, ids, degrees[ids] / max(float(np.linalg.norm(degrees[ids])), MIN_COUNT))


def pair_counts(counts: Arrays, items: Ints) -> Arrays:
    """Return a client's users of the pairs of these items, and of each item as a pair with itself."""
    pairs, values = _inside(counts, items)
    used_items = np.flatnonzero(counts[DEGREES][items] > MIN_COUNT)
    ids = np.concatenate([_pair_ids(pairs[:, 0], pairs[:, 1]), _pair_ids(used_items, used_items)])
    order = np.argsort(ids)
    return _column(PAIRS, ids[order], np.concatenate([values, counts[DEGREES][items[used_items]]])[order])


def restricted(counts: Arrays, items: Ints) -> Arrays:
    """Return a client's counts of these items alone, which its part of the sums are."""
    pairs, values = _inside(counts, items)
    degrees = np.zeros_like(counts[DEGREES])
    degrees[items] = counts[DEGREES][items]
    return counts_of(items[pairs], values, degrees, len(degrees))


def choices(solved: Arrays) -> Floats:
    """Return the weights among which clients choose, (L + 2) × F: those of each λ, w⁰, popularity."""
    return np.concatenate([solved[CANDIDATES], _weights(START)[None], _weights(POPULARITY)[None]])


def solve(solved: Arrays, sums: Arrays, strength: float) -> Arrays:
    """Return what is solved after the next sums.

    Raises:
        DataError: No market has a pair of items.
    """
    if POPULAR in sums:
        degrees = np.maximum(sums[POPULAR].ravel(), 0)
        none = counts_of(np.zeros((0, 2), np.int64), np.zeros(0), degrees, len(degrees))
        return {**solved, **none, WEIGHTS: _weights({**START, "new_degree_elsewhere": 1.0})}
    if USED in sums:
        return {**solved, ITEMS: choose_used(sums[USED].ravel(), int(solved[SIZES][2]), "market", "pair")}
    if PAIRS in sums:
        values = np.array([strength] if strength else CHOICES)
        first = np.tile(_weights(START), (len(values), 1))
        return {
            **solved,
            **_counts(solved, sums[PAIRS].ravel()),
            **{STRENGTHS: values, CANDIDATES: first, STEPS: np.array([0])},
        }
    if GRADIENT in sums:
        return {**solved, **_newton_step(solved, sums[GRADIENT], sums[HESSIAN])}
    warm, cold = choices(solved)[sums[QUALITY].argmax(axis=1)]
    return {**solved, WEIGHTS: np.append(warm[:FIRST_COLD], cold[FIRST_COLD:]).astype(np.float32)}


def _newton_step(solved: Arrays, gradient: Floats, hessian: Floats) -> Arrays:
    """Return w of each λ after one more Newton step.

    The last column of the gradient is the weight of the queries.
    """
    queries = max(float(gradient[0, -1]), MIN_COUNT)
    diagonal = np.diagonal(hessian[0]) / queries
    scale = solved.get(SCALE, np.where(diagonal > 0, diagonal, 1.0))
    found = []
    for w, strength, g, h in zip(solved[CANDIDATES], solved[STRENGTHS], gradient[:, :-1], hessian, strict=True):
        penalty = strength * scale
        slope = g / queries + penalty * (w - _weights(START))
        found.append(w - np.linalg.solve(h / queries + np.diag(penalty), slope))
    best = found[len(found) // 2].astype(np.float32)
    return {SCALE: scale, CANDIDATES: np.array(found), STEPS: solved[STEPS] + 1, WEIGHTS: best}


def _counts(solved: Arrays, pairs: Floats) -> Arrays:
    """Return the sums of all pairs i ≤ j of the chosen items as counts over the vocabulary."""
    items, size = solved[ITEMS], int(solved[SIZES][0])
    ids = np.flatnonzero(pairs > MIN_COUNT)
    small, large = ends_of(ids)
    is_pair, degrees = small < large, np.zeros(size)
    degrees[items[large[~is_pair]]] = pairs[ids[~is_pair]]
    ends = np.stack([items[small[is_pair]], items[large[is_pair]]], axis=1)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    return counts_of(ends[order], pairs[ids[is_pair]][order], degrees, size)


def _inside(counts: Arrays, items: Ints) -> tuple[Ints, Floats32]:
    """Return the pairs of chosen items as positions a < b among them, P × 2, and their users."""
    size = len(counts[DEGREES])
    position = np.full(size, -1, np.int64)
    position[items] = np.arange(len(items))
    pairs = position[np.stack([counts[KEYS] // size, counts[KEYS] % size], axis=1)]
    is_inside = (pairs >= 0).all(axis=1)
    return pairs[is_inside], counts[VALUES][is_inside]


def _pair_ids(small: Ints, large: Ints) -> Ints:
    """Return the ids of pairs of positions small ≤ large, as `closed_form.pairs_of` does."""
    return np.asarray(large * (large + 1) // 2 + small, np.int64)


def _column(table: str, ids: Ints, values: Array | None) -> Arrays:
    """Return rows of a table of one column; values are 1 by default."""
    numbers = np.ones(len(ids), np.float32) if values is None else values.astype(np.float32)
    return named_rows(table, ids, numbers[:, None])


def _weights(values: dict[str, float]) -> Floats:
    return np.array([values.get(name, 0.0) for name in BLENDED])
