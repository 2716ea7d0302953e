"""Sessions in closed form: SLIST (Choi et al. 2021, arXiv 2103.16104).

Of a session, s ∈ {0,1}^V has its items. Before each click but the first, p has the items clicked so far and f those still to
come, weighted by e^(−Δ), where Δ is the number of clicks from the border. With sums over all sessions and borders,

    G = ½ Σ s sᵀ + ½ Σ p pᵀ,    H = ½ Σ s sᵀ + ½ Σ p fᵀ,    B = (G + λI)⁻¹ H,

and row i of B has the scores of what follows a click on i. A second hop adds what follows these items, c·B·diag(B1)⁻¹·B.
Clients get the strongest entries of each row. They add the rows of a session's clicks, weighted by e^(−Δ/δ), to features of
the visitor's own clicks.

Clients choose λ, c, δ and the weights of these features by sessions that they leave out of the sums of G and H, and then add
up all sessions.

Under noise there are two sums: of items, and of pairs i → j of the items that are most frequent in the first. A visitor has
length 1 in each.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.arrays import Array, Arrays, Floats, Floats32, Ints
from common.errors import DataError, WireError
from common.tasks.closed_form import (
    Effort,
    Entries,
    RowNames,
    check_ids,
    check_sizes,
    choose_most,
    choose_used,
    first_size,
    pairs_of,
    sum_entries,
    upper,
)
from common.tasks.progress import Progress
from common.tasks.sessions.vocabulary import Clicks, Items

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


FADING = 0.8
"""Weight per step of age of a click: .8^age."""

FEATURES = ("own_frequency", "own_bigram", "session_recency", "last_item", "shared_rules")
"""The F features of an item.

log(1 + visits); log(1 + visits right after the last item); .8^(clicks ago) if the session has it; 1 if it is the last
item; log(1 + score) by the sums of the closed form, and 0 without them.
"""

VISITED, GRAM, FOLLOWS, GAINS = "slist_visited", "slist_gram", "slist_follows", "slist_gains"
"""Statistics of a client: visitors by item, pairs of G, ordered pairs of H, gains by choice.

In runs with noise, the first and the third have length 1 for each visitor.
"""

SIZES, STAGE, ITEMS, VISITORS = "slist_sizes", "slist_stage", "slist_items", "slist_visitors"
"""Solution: V, 1 under noise, largest N; number of sums; ids of the N items of B; visitors by item, V."""

ENDS, COLUMNS, WEIGHTS, CHOICE = "slist_ends", "slist_columns", "slist_weights", "slist_choice"
"""Solution: ends of the rows of B, L × N; columns and weights of their entries; choice.

L is the number of solutions that are compared, or 1. The choice is λ, c, δ and the blend.
"""

SOLUTION = (SIZES, STAGE, ITEMS, VISITORS, ENDS, COLUMNS, WEIGHTS, CHOICE)
"""Names of the arrays of a solution."""

STRENGTHS, HOPS = (50.0, 250.0), (0.0, 1.0)
"""Values of λ, and weights of the second hop, from which clients choose."""

READING = (2.0, 4.0)
"""Values of δ from which clients choose."""

BLENDS = tuple(
    (visits, follows, recency)
    for visits, follows in ((0, 0), (0.003, 0.01), (0.01, 0.01), (0.01, 0.03), (0.01, 0.1), (0.03, 0.03), (0.03, 0.1))
    for recency in (0, 0.01, 0.03, 0.1)
)
"""Weights of own visits, visits after the last item, and recency, from which clients choose."""

DEFAULT = (50.0, 0.0, 4.0, 0.003, 0.01, 0.03)
"""Choice before the sum of gains, and under noise."""

WHOLE = 0.5
"""Weight of whole sessions in G and H."""

MOST_CLICKS, MOST_SESSIONS = 20, 500
"""Largest number of clicks of a session and of sessions of a visitor that count: the last ones.

A session so adds at most 10 to an entry of G or H, and a visitor at most 5,000.
"""

MOST_ITEMS = 20_000
"""Largest number N of items; of more, those that most visitors have.

The sums take 12·N² bytes. The solve takes 8·N² bytes and the time of N³ multiplications and additions for each λ, above
`MOST_EXACT` half of both.
"""

MOST_EXACT = 10_000
"""Largest number of items whose matrix is inverted in float64, and for which several λ are solved.

Beyond it the inverse is in float32, and clients choose by the items of so many that most visitors have.
"""

MOST_MASKED_ITEMS = 1_600
"""Largest N in secure sums, in which each client's vector has all 3·N²/2 pairs."""

MOST_NOISED_ITEMS = 200
"""Largest N under noise."""

ROW_ENTRIES = 50
"""Largest number of entries of a row of B that clients get."""

LEAST_DEVIATIONS, NOISED_WEIGHT = 2.0, 0.1
"""Standard deviations of the noise that are subtracted from each pair; weight of what is left."""

TOP = 20
"""Length of the list in which the next item counts as a hit."""

SHARE_WEIGHT, FLOOR = 1e-4, 1e-9
"""Weight of an item's share of visitors, the last resort between items; least score of an item."""

FACTOR_SHARE, INVERSE_SHARE = 0.2, 0.7
"""Shares of a solve's time until the matrix is factorised, and until it is inverted, as measured."""

BLOCK_NUMBERS = 2**22
"""Numbers of a block of rows of B that are computed together."""

Block = Callable[[], Floats]
"""Function that computes a block of rows."""


LASTING = {
    VISITED: RowNames(first_size(SIZES)),
    GRAM: RowNames(first_size(SIZES), chosen=ITEMS, pairs="unordered"),
    FOLLOWS: RowNames(first_size(SIZES), chosen=ITEMS, pairs="ordered"),
}
"""Sums that other runs continue."""


def sizes(items: Items, noised: bool) -> Arrays:
    """Return what is known before the first sum."""
    most = MOST_NOISED_ITEMS if noised else MOST_ITEMS
    return {SIZES: np.array([len(items.items), noised, most], np.int64), STAGE: np.zeros(1, np.int64)}


def effort(solved: Arrays) -> Effort:
    """Return the effort of the next solve: an inverse for each λ, and blocks of rows."""
    stage = solved[STAGE].item()
    if solved[SIZES][1] or stage not in (1, 3):
        return Effort()
    size, strengths = len(solved[ITEMS]), 1
    if stage == 1:
        size, strengths = min(size, MOST_EXACT), len(STRENGTHS)
    share = 1 if size <= MOST_EXACT else 0.5
    return Effort(8 * share * size**2 + 40 * BLOCK_NUMBERS * (os.cpu_count() or 1), share * strengths * size**3)


def is_solved(solved: Arrays) -> bool:
    """Return True if items can be scored."""
    return ENDS in solved


def check(solved: Arrays, items: Items, *, noised: bool) -> None:
    """Check that what a server has solved belongs to a vocabulary.

    Raises:
        WireError: Sizes differ, or arrays do not fit each other.
    """
    expected = sizes(items, noised)[SIZES]
    check_sizes(solved.get(SIZES, np.zeros(0)), expected)
    if STAGE not in solved or solved[STAGE].shape != (1,):
        raise WireError("the server's sums have other sizes than a run of this vocabulary")
    if ITEMS not in solved and ENDS not in solved:
        return
    chosen, visitors = solved.get(ITEMS, np.zeros(0)), solved.get(VISITORS, np.zeros(0))
    check_ids(chosen, expected[2], expected[0], "items")
    if visitors.shape != (expected[0],) or not np.isfinite(visitors).all():
        raise WireError("the server's numbers of visitors are not of this vocabulary")
    if ENDS in solved:
        _check_rows(solved, len(chosen))


def _check_rows(solved: Arrays, items: int) -> None:
    """Check the rows of B of `items` items.

    Raises:
        WireError: Arrays do not fit each other.
    """
    none = np.zeros(0)
    ends, columns, weights, choice = (solved.get(name, none) for name in (ENDS, COLUMNS, WEIGHTS, CHOICE))
    fits = (
        ends.ndim == 2
        and ends.dtype == np.int64
        and ends.shape[1:] == (items,)
        and len(ends) <= len(STRENGTHS) * len(HOPS)
    )
    fits = fits and columns.shape == weights.shape == (int(ends.ravel()[-1]) if ends.size else 0,)
    fits = fits and bool((np.diff(ends.ravel(), prepend=0) >= 0).all()) and columns.dtype == np.uint16
    if not fits or (columns >= items).any() or not np.isfinite(weights).all():
        raise WireError("the server's rows do not fit its items")
    if choice.shape != (len(DEFAULT),) or not np.isfinite(choice).all() or (choice < 0).any() or choice[2] == 0:
        raise WireError("the server's choice has negative or missing numbers")


ENTRIES = {VISITED: Entries(0, 1), GRAM: Entries(), FOLLOWS: Entries()}
"""Ranges of statistics; see `ClosedForm.entries`."""


def template(solved: Arrays) -> Arrays:
    """Return zeros of a client's next statistics.

    They are V items, then the N(N + 1)/2 pairs of G and the N² of H, then gains by choice, then the pairs again. Items and
    pairs are tables of one column, of which a client sends the rows that it has.
    """
    stage = solved[STAGE].item()
    if stage == 0:
        return {VISITED: np.zeros((int(solved[SIZES][0]), 1), np.float32)}
    size = len(solved[ITEMS])
    if stage == 2:
        return {GAINS: np.zeros(len(solved[ENDS]) * len(READING) * len(BLENDS), np.float32)}
    follows = {FOLLOWS: np.zeros((size**2, 1), np.float32)}
    return follows if solved[SIZES][1] else {GRAM: np.zeros((size * (size + 1) // 2, 1), np.float32)} | follows


@dataclass(frozen=True)
class VisitorSessions:
    """Training sessions of a visitor.

    Args:
        sessions: All of them.
        is_hidden: True for those by which the visitor chooses.
    """

    sessions: Sequence[Clicks]
    is_hidden: Sequence[bool]

    def summed(self, solved: Arrays) -> Sequence[Clicks]:
        """Return the sessions of the next sum."""
        hides = solved[STAGE].item() == 1 and not solved[SIZES][1]
        chosen = [c for c, hidden in zip(self.sessions, self.is_hidden, strict=True) if not (hides and hidden)]
        return chosen[-MOST_SESSIONS:]


HiddenClick = tuple[Clicks, Ints, Floats32, int]
"""Clicks before it, items, their features without rows of B, M × F, and the clicked item."""


def statistics(solved: Arrays, visitors: Iterable[VisitorSessions], hidden: Iterable[HiddenClick]) -> Arrays:
    """Return a client's next statistics, of the form of `template`; tables as the client's rows.

    Args:
        solved: What is solved.
        visitors: Visitors of the client.
        hidden: The clicks that its visitors hide.
    """
    stage = solved[STAGE].item()
    if stage == 2:
        return {GAINS: _count_gains(solved, hidden)}
    sessions = [visitor.summed(solved) for visitor in visitors]
    if stage == 0:
        return _sum_visits(sessions, to_length=bool(solved[SIZES][1]))
    inside = [[_positions_of(solved[ITEMS], clicks) for clicks in each] for each in sessions]
    if solved[SIZES][1]:
        return sum_entries(FOLLOWS, [_unit_pairs(each, len(solved[ITEMS])) for each in inside])
    pairs = [_pairs_of_session(clicks, len(solved[ITEMS])) for each in inside for clicks in each if len(clicks)]
    return sum_entries(GRAM, [gram for gram, _ in pairs]) | sum_entries(FOLLOWS, [follows for _, follows in pairs])


def solve(solved: Arrays, sums: Arrays, strength: float) -> Arrays:
    """Return what is solved after the next sums.

    Raises:
        DataError: No visitor has a session, or λ is too small.
    """
    stage = int(solved[STAGE].item())
    solved = {**solved, STAGE: np.array([stage + 1], np.int64)}
    if VISITED in sums:
        visitors = sums[VISITED].ravel()
        chosen = choose_used(visitors, int(solved[SIZES][2]), "visitor", "session")
        return solved | {ITEMS: chosen, VISITORS: np.maximum(visitors, 0).astype(np.float32)}
    choice = np.array([strength or DEFAULT[0], *DEFAULT[1:]], np.float32)
    if GAINS in sums:
        return solved | _choose(solved, sums[GAINS])
    if GRAM not in sums:
        rows = _denoise(sums[FOLLOWS].reshape(-1, len(solved[ITEMS])), solved[VISITORS][solved[ITEMS]])
        return solved | _to_rows([_strongest([lambda: rows])]) | {CHOICE: choice}
    size = len(solved[ITEMS])
    if stage == 1:
        strengths: Sequence[float] = (strength,) if strength else STRENGTHS
        frequent = choose_most(solved[VISITORS][solved[ITEMS]], MOST_EXACT)
        pairs, follows = _restrict(sums, size, frequent)
        found = chain.from_iterable(_solve_hops(pairs, follows, each, HOPS) for each in strengths)
        return solved | _to_rows(_spread_rows(matrix, frequent, size) for matrix in found) | {CHOICE: choice}
    ridge, hop = solved[CHOICE][:2].tolist()
    return solved | _to_rows(_solve_hops(*_restrict(sums, size, np.arange(size)), ridge, [hop]))


def _sum_visits(visitors: Sequence[Sequence[Clicks]], *, to_length: bool) -> Arrays:
    """Return the number of visitors with each item, or the sum of vectors √sessions of length 1."""
    entries: list[tuple[Ints, float | Floats]] = []
    for sessions in visitors:
        items, number = np.unique(
            np.concatenate([np.zeros(0, np.int64), *map(np.unique, sessions)]), return_counts=True
        )
        entries.append((items, np.sqrt(number / number.sum()) if to_length else 1.0))
    return sum_entries(VISITED, entries)


def _weigh_clicks(clicks: Clicks) -> tuple[Ints, Floats, Floats]:
    """Return the n distinct items of L clicks, and p and f of each border, both (L − 1) × n."""
    items, positions = np.unique(clicks, return_inverse=True)
    past, future = np.zeros((len(clicks), len(items))), np.zeros((len(clicks) + 1, len(items)))
    for k in range(1, len(clicks)):
        past[k] = past[k - 1] * np.exp(-1)
        past[k, positions[k - 1]] = 1
    for k in range(len(clicks) - 1, 0, -1):
        future[k] = future[k + 1] * np.exp(-1)
        future[k, positions[k]] = 1
    return items, past[1:], future[1:-1]


def _pairs_of_session(clicks: Clicks, size: int) -> tuple[tuple[Ints, Floats], tuple[Ints, Floats]]:
    """Return ids and values of a session's pairs of G and of H; clicks are positions among `size` items."""
    items, past, future = _weigh_clicks(clicks[-MOST_CLICKS:])
    gram = WHOLE + (1 - WHOLE) * past.T @ past
    follows = WHOLE + (1 - WHOLE) * past.T @ future
    ordered = (items[:, None] * size + items[None]).ravel()
    return (pairs_of(items), gram[np.tri(len(items), dtype=bool)]), (ordered, follows.ravel())


def _unit_pairs(sessions: Sequence[Clicks], size: int) -> tuple[Ints, Floats]:
    """Return ids and values of a visitor's ordered pairs of different items, of length 1."""
    pairs = [_pairs_of_session(clicks, size)[1] for clicks in sessions if len(clicks)]
    ids = np.concatenate([np.zeros(0, np.int64), *(ids for ids, _ in pairs)])
    values = np.concatenate([np.zeros(0), *(values for _, values in pairs)])
    ids, column = np.unique(ids, return_inverse=True)
    roots = np.sqrt(np.bincount(column, values, len(ids))) * (ids // size != ids % size)
    return ids, roots / max(float(np.linalg.norm(roots)), FLOOR)


def _denoise(follows: Floats, visitors: Floats32) -> Floats:
    """Return rows of scores from noised pairs and noised visitors of their first item.

    `LEAST_DEVIATIONS` standard deviations of the noise are subtracted from each pair. Most pairs have no visitor, so the
    median size of all is .67 standard deviations.
    """
    deviation = float(np.median(np.abs(follows))) / 0.6745
    rest = np.maximum(follows - LEAST_DEVIATIONS * deviation, 0)
    scores: Floats = NOISED_WEIGHT * rest / np.maximum(visitors, max(3 * deviation, FLOOR))[:, None]
    return scores


def _restrict(sums: Arrays, size: int, chosen: Ints) -> tuple[Floats, "csr_matrix"]:
    """Return the pairs of G, and H, of the items at these positions of `size`, ascending."""
    from scipy.sparse import csr_matrix

    follows, pairs = csr_matrix(sums[FOLLOWS].reshape(size, size)), sums[GRAM].ravel()
    if len(chosen) == size:
        return pairs, follows
    rows = (pairs[row * (row + 1) // 2 + chosen[: k + 1]] for k, row in enumerate(chosen.tolist()))
    return np.concatenate([*rows]), follows[chosen][:, chosen]


def _spread_rows(matrix: "csr_matrix", chosen: Ints, size: int) -> "csr_matrix":
    """Return a matrix of chosen items as one of all items, whose other rows and columns are empty."""
    from scipy.sparse import csr_matrix

    counts = np.zeros(size + 1, np.int64)
    counts[chosen + 1] = np.diff(matrix.indptr)
    return csr_matrix((matrix.data, chosen[matrix.indices], np.cumsum(counts)), shape=(size, size))


def _solve_rows(pairs: Floats, follows: "csr_matrix", strength: float) -> list[Block]:
    """Return blocks of rows of B = (G + λI)⁻¹H.

    The inverse by Cholesky replaces its matrix, of which LAPACK uses one triangle. H has few pairs.

    Raises:
        DataError: G + λI is not positive definite.
    """
    from scipy.linalg.lapack import dpotrf, dpotri, spotrf, spotri

    size, progress = follows.shape[0], Progress(f"items at λ = {strength:g}")
    is_exact = size <= MOST_EXACT
    matrix = upper(pairs, np.float64 if is_exact else np.float32)
    matrix[np.diag_indices(size)] += strength
    factorise, invert = (dpotrf, dpotri) if is_exact else (spotrf, spotri)
    factor, failed = factorise(matrix.T, lower=1, overwrite_a=1, clean=0)
    progress("factorised", FACTOR_SHARE)
    if not failed:
        factor, failed = invert(factor, lower=1, overwrite_c=1)
    if failed:
        raise DataError(f"the matrix of item pairs is singular at λ = {strength:g}; raise algorithm.ridge.strength")
    inverse, columns, step = factor.T, follows.T.tocsr().astype(matrix.dtype), max(1, BLOCK_NUMBERS // size)

    def block(begin: int) -> Floats:
        progress("rows", INVERSE_SHARE + (1 - INVERSE_SHARE) * begin / size)
        end = min(begin + step, size)
        corner = np.triu(inverse[begin:end, begin:end])
        corner += np.triu(corner, 1).T
        rows = np.concatenate([inverse[:begin, begin:end].T, corner, inverse[begin:end, end:]], axis=1)
        return np.asarray((columns @ rows.T).T)

    return [partial(block, begin) for begin in range(0, size, step)]


def _solve_hops(pairs: Floats, follows: "csr_matrix", strength: float, hops: Sequence[float]) -> "Iterator[csr_matrix]":
    """Yield the strongest entries of B, with the second hop at each of these weights."""
    from scipy.sparse import diags

    rows = _strongest(_solve_rows(pairs, follows, strength))
    shares = diags(1 / np.maximum(np.asarray(rows.sum(1)).ravel(), FLOOR)) @ rows
    size = rows.shape[0]
    step = max(1, BLOCK_NUMBERS // size)
    for hop in hops:
        blocks = [partial(_add_hop, rows, shares, hop, slice(begin, begin + step)) for begin in range(0, size, step)]
        yield _strongest(blocks) if hop else rows


def _add_hop(rows: "csr_matrix", shares: "csr_matrix", hop: float, inside: slice) -> Floats:
    """Return some rows of B with the second hop."""
    block = rows[inside]
    return np.asarray((block + hop * (block @ shares)).toarray())


def _strongest(blocks: Sequence[Block]) -> "csr_matrix":
    """Return the `ROW_ENTRIES` largest positive entries of each row of a square matrix in blocks of rows.

    Each processor core computes a block at a time.
    """
    from concurrent.futures import ThreadPoolExecutor

    from scipy.sparse import csr_matrix

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counts, columns, weights = zip(*pool.map(_strongest_of, blocks), strict=True)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(counts))])
    return csr_matrix((np.concatenate(weights), np.concatenate(columns), ends), shape=(len(ends) - 1, len(ends) - 1))


def _strongest_of(block: Block) -> tuple[Ints, Ints, Floats]:
    """Return the number of entries of each row of a block, their columns and their values."""
    rows = block()
    least = max(rows.shape[1] - ROW_ENTRIES, 0)
    best = np.sort(np.argpartition(rows, min(least, rows.shape[1] - 1), axis=1)[:, least:], axis=1)
    values = np.take_along_axis(rows, best, axis=1)
    return (values > 0).sum(1), best[values > 0], values[values > 0]


def _to_rows(matrices: "Iterable[csr_matrix]") -> Arrays:
    """Return the arrays of matrices B."""
    found = list(matrices)
    counts = np.concatenate([np.diff(matrix.indptr) for matrix in found])
    return {
        ENDS: np.cumsum(counts).reshape(len(found), -1).astype(np.int64),
        COLUMNS: np.concatenate([matrix.indices for matrix in found]).astype(np.uint16),
        WEIGHTS: np.concatenate([matrix.data for matrix in found]).astype(np.float32),
    }


def _choose(solved: Arrays, gains: Floats) -> Arrays:
    """Return the choice with the largest gain, and its rows."""
    best = np.unravel_index(int(np.argmax(gains)), (len(solved[ENDS]), len(READING), len(BLENDS)))
    number, reading, blend = (int(k) for k in best)
    many = len(solved[ENDS]) > len(HOPS)
    strength = STRENGTHS[number // len(HOPS)] if many else float(solved[CHOICE][0])
    rows = Rows.of(solved, number)
    return {
        ENDS: rows.ends[1:][None],
        COLUMNS: rows.columns,
        WEIGHTS: rows.weights,
        CHOICE: np.array([strength, HOPS[number % len(HOPS)], READING[reading], *BLENDS[blend]], np.float32),
    }


def _count_gains(solved: Arrays, clicks: Iterable[HiddenClick]) -> Floats32:
    """Return the sum of 1 + 1/rank over hidden clicks, by solution, δ and blend; 0 beyond the first `TOP`."""
    gains = np.zeros((len(solved[ENDS]), len(READING), len(BLENDS)))
    blends = np.array([feature_weights(blend) for blend in BLENDS]).T
    solutions = [Rows.of(solved, number, reading) for number in range(len(gains)) for reading in READING]
    by_rows, shared = gains.reshape(len(solutions), -1), np.zeros(len(solved[VISITORS]))
    for prefix, items, values, target in clicks:
        scores = values @ blends
        without = scores[items == target].sum(0)
        for gain, rows in zip(by_rows, solutions, strict=True):
            found, amounts = rows.scores(prefix)
            shared[found] = np.log1p(amounts).astype(np.float32)
            hit, better = without + shared[target], scores + shared[items, None]
            shared[items] = 0
            ranks = 1 + (better > hit).sum(0) + (shared[found, None] > hit).sum(0)
            shared[found] = 0
            gain += np.where((ranks <= TOP) & (hit > 0), 1 + 1 / ranks, 0)
    return gains.ravel().astype(np.float32)


def feature_weights(blend: Sequence[float]) -> Floats:
    """Return the weights of `FEATURES` for those of own visits, visits after the last item, and recency."""
    weights = dict(zip(FEATURES, (*blend, 0.0, 1.0), strict=True))
    return np.array([weights[name] for name in FEATURES], np.float64)


def share_scores(solved: Arrays) -> Floats:
    """Return the scores of all items, V, by their visitors alone."""
    visitors = solved[VISITORS].astype(np.float64)
    scores: Floats = SHARE_WEIGHT * visitors / max(float(visitors.max()), 1.0)
    return scores


def logits(solved: Arrays, items: Ints, values: Array) -> Floats32:
    """Return logs of the scores of all items, V.

    Args:
        solved: The solution.
        items: Items with features.
        values: Their features; the last is log(1 + score of `Rows`).
    """
    scores = share_scores(solved)
    scores[items] += values.astype(np.float64) @ feature_weights(solved[CHOICE][3:].tolist())
    return np.log(np.maximum(scores, 0) + FLOOR).astype(np.float32)


def _positions_of(ids: Ints, clicks: Clicks) -> Clicks:
    """Return the positions in `ids`, ascending, of those clicks that are in it."""
    found = np.minimum(np.searchsorted(ids, clicks), len(ids) - 1)
    positions: Ints = found[ids[found] == clicks]
    return positions


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one solution B, and δ of a session's clicks.

    Args:
        ids: Ids of the N items, ascending.
        ends: 0, then the end of each row, N + 1.
        columns: Positions of the entries.
        weights: Entries.
        reading: δ.
    """

    ids: Ints
    ends: Ints
    columns: NDArray[np.uint16]
    weights: Floats32
    reading: float

    @classmethod
    def of(cls, solved: Arrays, number: int = 0, reading: float = 0.0) -> "Rows":
        """Return the rows of the solution with that number; δ is the chosen one if it is 0."""
        ends = solved[ENDS]
        first = int(ends[number - 1, -1]) if number else 0
        inside = slice(first, int(ends[number, -1]))
        starts = np.concatenate([np.zeros(1, np.int64), ends[number] - first])
        columns, weights = solved[COLUMNS][inside], solved[WEIGHTS][inside]
        return cls(solved[ITEMS], starts, columns, weights, reading or float(solved[CHOICE][2]))

    def scores(self, prefix: Clicks) -> tuple[Ints, Floats]:
        """Return items and their scores after these clicks; all other items have 0."""
        newest = prefix[::-1][:MOST_CLICKS]
        clicked, ages = np.unique(newest, return_index=True)  # the first index is that of the last click
        inside = np.isin(clicked, self.ids)
        rows, factors = np.searchsorted(self.ids, clicked[inside]), np.exp(-ages[inside] / self.reading)
        spans = [slice(self.ends[row], self.ends[row + 1]) for row in rows.tolist()]
        columns = np.concatenate([np.zeros(0, np.int64), *(self.columns[span].astype(np.int64) for span in spans)])
        weighted = [self.weights[span] * factor for span, factor in zip(spans, factors.tolist(), strict=True)]
        found, index = np.unique(columns, return_inverse=True)
        totals = np.bincount(index, np.concatenate([np.zeros(0), *weighted]), len(found)).astype(np.float64)
        return self.ids[found], totals
