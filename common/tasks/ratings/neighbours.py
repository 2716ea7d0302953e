"""Ratings in closed form: item biases, and a ridge regression of residuals on common factors.

Three sums. First, of each item: residuals r − m from the raters' own means, and their number; b = Σ(r − m)/(n + `BIAS_WEIGHT`).
Then, of each pair of items: products of the residuals e = r − m − o − b, and the number of common raters; o is the rater's
mean residual. Covariance C = Σee/(n + `PAIR_WEIGHT`) ≈ UUᵀ by its largest eigenvalues. Last, squared errors by rank and λ.

A rater's answer for item i is m + o + b_i + U_i z with z = (U_oᵀU_o + λI)⁻¹ U_oᵀ e_o over the own ratings o: the posterior
mean of a Gaussian process over items with covariance C and noise λ. Nothing but the sums leaves a client.

A twentieth of a rater's ratings is in neither of the first two sums; by these, clients choose rank and λ. Residuals are in
[−1, 1], and at most `MOST_RATINGS` of a rater count: one adds at most 1 to a cell, and 500√2 in L2 norm to the pairs.

Under noise there is one sum of low dimension: the report of the default model, of norm 1.
"""

import numpy as np

from common.arrays import Arrays, Floats, Floats32
from common.errors import WireError
from common.tasks.closed_form import (
    Effort,
    Entries,
    RowNames,
    check_ids,
    check_sizes,
    choose_used,
    first_size,
    symmetric,
)
from common.tasks.ratings.vocabulary import ProductCatalogue

ITEM_SUMS, PAIR_SUMS, ERRORS, REPORT = "ridge_items", "ridge_pairs", "ridge_errors", "ridge_report"
"""Statistics of a client: sums of items, of pairs, squared errors by choice; its report under noise."""

SIZES, BIASES, ITEMS, FACTORS, CHOICES, CHOSEN, SCORES = (
    *("ridge_sizes", "ridge_biases", "ridge_chosen_items"),
    *("ridge_factors", "ridge_choices", "ridge_choice", "ridge_scores"),
)
"""Solution: I, 1 under noise, largest V; b; items of pairs; Uᵀ, r × I.

Then each rank and λ from which clients choose, C × 2; the chosen ones; the sum of reports.
"""

RANKS, STRENGTHS = (5, 10, 20), (0.025, 0.05, 0.1, 0.2)
"""Ranks, and values of λ if none is given, from which clients choose."""

MIDDLE = (10, 0.1)
"""Rank and λ of a model whose sum of errors is not there yet."""

LARGEST_RANK = 20

BIAS_WEIGHT, PAIR_WEIGHT = 5.0, 100.0
"""Ratings and common raters that the prior values 0 count as.

Chosen on validation ratings of splits 100 and 101 of MovieLens and FilmTrust.
"""

MOST_ITEMS = 10_000
"""Largest number V of items with pairs; of more, those with most ratings.

The sum takes 8·V² bytes and the solve 16·V² bytes, 2.4 GB and half a minute for 10,000 items.
"""

MOST_EXACT = 3_000
"""Largest V whose covariance is decomposed as a whole; beyond it by Lanczos' method."""

MOST_MASKED_ITEMS = 1_990
"""Largest V in secure sums."""

MOST_RATINGS = 500
"""Largest number of ratings of a rater that count."""


LASTING = {
    **dict.fromkeys((ITEM_SUMS, REPORT), RowNames(first_size(SIZES))),
    PAIR_SUMS: RowNames(first_size(SIZES), chosen=ITEMS, pairs="unordered"),
}
"""Sums that other runs continue; residuals in those of pairs are from the biases of their own run."""


def sizes(catalogue: ProductCatalogue, noised: bool) -> Arrays:
    """Return what is known before the first sum."""
    return {SIZES: np.array([len(catalogue.items), noised, MOST_ITEMS], np.int64)}


def effort(solved: Arrays) -> Effort:
    """Return the effort of the next solve: a tridiagonal form of the covariance, or its products."""
    size = len(solved[ITEMS]) if ITEMS in solved and FACTORS not in solved else 0
    return Effort(40 * size**2, 8 * size**3) if size <= MOST_EXACT else Effort(24 * size**2, 6_000 * size**2)


ENTRIES = {**dict.fromkeys((ITEM_SUMS, PAIR_SUMS), Entries(-1, 1, has_counts=True)), ERRORS: Entries()}
"""Ranges of statistics; see `ClosedForm.entries`."""


def is_solved(statics: Arrays) -> bool:
    """Return True if ratings can be predicted."""
    return FACTORS in statics or SCORES in statics


def check(solved: Arrays, catalogue: ProductCatalogue, *, noised: bool) -> None:
    """Check that what a server has solved belongs to a vocabulary.

    Raises:
        WireError: Sizes differ, or arrays do not fit each other.
    """
    count = len(catalogue.items)
    check_sizes(solved.get(SIZES, np.zeros(0)), sizes(catalogue, noised)[SIZES])
    check_ids(solved.get(ITEMS, np.zeros(0, np.int64)), MOST_ITEMS, count, "items")
    factors, choices = solved.get(FACTORS, np.zeros((0, count))), solved.get(CHOICES, np.zeros((0, 2)))
    if choices.ndim != 2 or choices.shape[1] != 2 or len(choices) > len(RANKS) * len(STRENGTHS) or (choices <= 0).any():
        raise WireError("the server's choices are not ranks and strengths")
    if solved.get(BIASES, np.zeros(count)).shape != (count,) or factors.ndim != 2 or factors.shape[1] != count:
        raise WireError("the server's solution does not fit this vocabulary")


def template(solved: Arrays) -> Arrays:
    """Return zeros of a client's next statistics.

    They are I × 2 sums of items, V(V + 1)/2 × 2 of pairs, then squared errors by choice and the number of ratings. Items and
    pairs are tables, of which a client sends the rows that it has.
    """
    size, noised, _ = solved[SIZES].tolist()
    if noised:
        return {REPORT: np.zeros((size, 1), np.float32)}
    if ITEMS not in solved:
        return {ITEM_SUMS: np.zeros((size, 2), np.float32)}
    if FACTORS not in solved:
        size = len(solved[ITEMS])
        return {PAIR_SUMS: np.zeros((size * (size + 1) // 2, 2), np.float32)}
    return {ERRORS: np.zeros(len(solved[CHOICES]) + 1, np.float32)}


def solve(solved: Arrays, sums: Arrays, strength: float) -> Arrays:
    """Return what is solved after the next sums.

    Raises:
        DataError: No client has a rating.
    """
    if REPORT in sums:
        return {**solved, SCORES: sums[REPORT].ravel().astype(np.float32)}
    if ITEM_SUMS in sums:
        residuals, counts = sums[ITEM_SUMS].T
        return {
            **solved,
            BIASES: (residuals / (counts + BIAS_WEIGHT)).astype(np.float32),
            ITEMS: choose_used(counts, int(solved[SIZES][2]), "client", "rating"),
        }
    if PAIR_SUMS in sums:
        choices = [(rank, each) for rank in RANKS for each in ([strength] if strength else STRENGTHS)]
        found = {FACTORS: _factors(solved, sums[PAIR_SUMS]), CHOICES: np.array(choices, np.float32)}
        return {**solved, **found, CHOSEN: np.array([MIDDLE[0], strength or MIDDLE[1]], np.float32)}
    return {**solved, CHOSEN: solved[CHOICES][int(np.argmin(sums[ERRORS][:-1]))]}


def factors_of(solved: Arrays) -> tuple[Floats, float]:
    """Return U of the chosen rank, I × r, and λ."""
    rank, strength = solved[CHOSEN].tolist()
    return solved[FACTORS][: int(rank)].T.astype(np.float64), float(strength)


def _largest(covariance: Floats, rank: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues, ascending, and their vectors; zeros for those that do not converge."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    size = len(covariance)
    if size <= MOST_EXACT:
        largest = (size - rank, size - 1)
        values, vectors = eigh(covariance, subset_by_index=largest, overwrite_a=True, check_finite=False)
        return values, vectors
    try:
        values, vectors = eigsh(covariance, rank, which="LA", v0=np.random.default_rng(0).standard_normal(size))
    except ArpackNoConvergence as error:  # of fewer raters than `rank`, all eigenvalues left are 0
        values, vectors = error.eigenvalues.real, error.eigenvectors.real
    order, found = np.argsort(values), (np.zeros(rank), np.zeros((size, rank)))
    found[0][rank - len(order) :], found[1][:, rank - len(order) :] = values[order], vectors[:, order]
    return found


def _factors(solved: Arrays, pairs: Floats) -> Floats32:
    """Return Uᵀ over all items, r × I, of the covariance of the items of pairs."""
    items, size = solved[ITEMS], int(solved[SIZES][0])
    products, counts = pairs.T
    covariance = symmetric(products / (np.maximum(counts, 0) + PAIR_WEIGHT))
    rank = min(LARGEST_RANK, len(items))
    values, vectors = _largest(covariance, rank)
    factors = np.zeros((rank, size), np.float32)
    factors[:, items] = (vectors * np.sqrt(np.maximum(values, 0))).T[::-1]
    return factors
