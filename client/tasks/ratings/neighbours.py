"""Statistics and predictions of a rater for the closed form; only the statistics leave the client."""

from collections.abc import Sequence

import numpy as np

from client.tasks.ratings.baseline import normalize, own_mean, report
from client.tasks.ratings.data.raters import Rated
from common.arrays import Arrays, Floats, Ints
from common.tasks.ratings.neighbours import (
    BIASES,
    CHOICES,
    ERRORS,
    FACTORS,
    ITEM_SUMS,
    ITEMS,
    MOST_RATINGS,
    PAIR_SUMS,
    REPORT,
    SIZES,
    factors_of,
)
from common.tasks.ratings.options import RatingsOptions
from common.wire.sparse_rows import named_rows

HIDDEN_SHARE, MOST_HIDDEN = 20, 5
"""One of so many ratings, at most so many of a rater, is in no sum; rank and λ are chosen by those.

Errors of a rater with many ratings would else be as long as a liar's.
"""


NO_FACTORS = (0, 1.0)
"""Choice of rank and λ that predicts by own mean and biases alone."""


def statistics(solved: Arrays, raters: Sequence[Rated], options: RatingsOptions) -> Arrays:
    """Return what a client's raters add to the next sums.

    Args:
        solved: What is solved.
        raters: Training ratings of each rater.
        options: Options of the task.
    """
    size, noised, _ = solved[SIZES].tolist()
    if noised:
        x = normalize(np.sum([np.zeros(size), *(report(train, size, options) for train in raters)], axis=0))
        return _table(REPORT, np.arange(size), x[:, None])
    summed = [_summed(train) for train in raters]
    if ITEMS not in solved:
        return _item_sums(summed, options)
    if FACTORS not in solved:
        return _pair_sums(solved, summed, options)
    errors = np.zeros(len(solved[CHOICES]) + 1, np.float32)
    for train, first in zip(raters, summed, strict=True):
        hidden = Rated(train.items[len(first) :][:MOST_HIDDEN], train.values[len(first) :][:MOST_HIDDEN])
        errors += _errors(solved, first, hidden, options)
    return {ERRORS: errors}


def predict(
    solved: Arrays, train: Rated, items: Ints, options: RatingsOptions, choice: Sequence[float] | None = None
) -> Floats:
    """Predict a rater's ratings of items as shares of the scale: m + o + b + Uz, clipped to [0, 1].

    Args:
        solved: Solution.
        train: Training ratings of the rater.
        items: Items, n.
        options: Options of the task.
        choice: Rank and λ; those that clients chose by default.
    """
    factors, strength = factors_of(solved)
    if choice:
        factors, strength = solved[FACTORS][: int(choice[0])].T.astype(np.float64), choice[1]
    middle, residuals = _residuals(solved, train, options)
    rated = factors[train.items]
    z = np.linalg.solve(rated.T @ rated + strength * np.eye(rated.shape[1]), rated.T @ residuals)
    return np.asarray(np.clip(middle + solved[BIASES][items] + factors[items] @ z, 0, 1))


def predict_hidden(solved: Arrays, train: Rated, options: RatingsOptions) -> Floats:
    """Predict a rater's own ratings as `predict` does, each as if it were not among the residuals.

    The rater stays in the sums and in m + o.
    """
    factors, strength = factors_of(solved)
    middle, residuals = _residuals(solved, train, options)
    rated = factors[train.items]
    hat = rated @ np.linalg.solve(rated.T @ rated + strength * np.eye(rated.shape[1]), rated.T)
    weight = hat.diagonal()
    others = (hat @ residuals - weight * residuals) / (1 - weight)
    return np.asarray(np.clip(middle + solved[BIASES][train.items] + others, 0, 1))


def _residuals(solved: Arrays, train: Rated, options: RatingsOptions) -> tuple[float, Floats]:
    """Return m + o of a rater, and the residuals e of the ratings."""
    mean = own_mean(train, options)
    left = train.values - mean - solved[BIASES][train.items]
    offset = float(left.sum() / (len(train) + options.prior_weight))
    return mean + offset, np.clip(left - offset, -1, 1)


def _summed(train: Rated) -> Rated:
    """Return the ratings that count in the sums of items and pairs."""
    return train.first(min(len(train) - min(len(train) // HIDDEN_SHARE, MOST_HIDDEN), MOST_RATINGS))


def _item_sums(raters: Sequence[Rated], options: RatingsOptions) -> Arrays:
    ids = np.concatenate([np.zeros(0, np.int64), *(train.items for train in raters)])
    residuals = np.concatenate([np.zeros(0), *(train.values - own_mean(train, options) for train in raters)])
    return _sum(ITEM_SUMS, ids, residuals)


def _pair_sums(solved: Arrays, raters: Sequence[Rated], options: RatingsOptions) -> Arrays:
    chosen, ids, products = solved[ITEMS], [np.zeros(0, np.int64)], [np.zeros(0)]
    for train in raters:
        _, residuals = _residuals(solved, train, options)
        inside = np.flatnonzero(np.isin(train.items, chosen))
        positions = np.searchsorted(chosen, train.items[inside])
        order = np.argsort(positions)
        positions, e = positions[order], residuals[inside[order]]
        large, small = np.tril_indices(len(positions))
        ids.append(positions[large] * (positions[large] + 1) // 2 + positions[small])
        products.append(e[large] * e[small])
    return _sum(PAIR_SUMS, np.concatenate(ids), np.concatenate(products))


def _errors(solved: Arrays, train: Rated, hidden: Rated, options: RatingsOptions) -> Floats:
    """Return the squared errors of the hidden ratings by choice, and their number."""
    errors = np.zeros(len(solved[CHOICES]) + 1)
    if len(hidden):
        guesses = [predict(solved, train, hidden.items, options, choice) for choice in solved[CHOICES].tolist()]
        errors[:] = [*(((guess - hidden.values) ** 2).sum() for guess in guesses), len(hidden)]
    return errors


def _sum(table: str, ids: Ints, values: Floats) -> Arrays:
    """Return the sum of values, and their number, of each id."""
    once, column = np.unique(ids, return_inverse=True)
    sums = [np.bincount(column, weights, len(once)) for weights in (values, np.ones(len(values)))]
    return _table(table, once, np.stack(sums, axis=1))


def _table(table: str, ids: Ints, values: Floats) -> Arrays:
    return named_rows(table, ids, values.astype(np.float32))
