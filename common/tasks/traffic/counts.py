"""How departures from the usual go on: products of readings ℓ steps apart, summed over sensors where all allow sums.

They make everybody's linear forecast, with the local line beside one's own (explore-traffic.md §4, target 1). Gram matrices of
sliding windows would do as well and are not sent: their neighbouring entries differ by products of a series' first and last
readings alone, which can be solved for.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from common.arrays import Arrays, add, check_like
from common.errors import WireError
from common.tasks.traffic.ranges import POOLED

SUMS = LAGS, PAIRS = "lags.products", "lags.pairs"
"""Σ_t d_t·d_{t+ℓ}ᵀ, L × D × D, and how many pairs of readings each is of, L."""

STATICS = (*POOLED, *SUMS)
"""What stands beside a model's parameters."""

STEADY = 0.01
"""Added to the diagonal of the covariances, in units of their mean variance."""

Floats = NDArray[np.float64]


def lag_sums(departures: Floats, known: NDArray[np.bool_], lags: int) -> Arrays:
    """One sensor's sums; zeros below twice as many known readings as lags, since few readings could be told from them.

    Args:
        departures: d, in standard deviations, T × D.
        known: Which readings count, T.
        lags: L, from no step apart on.
    """
    length, variables = departures.shape
    products, pairs = np.zeros((lags, variables, variables)), np.zeros(lags)
    if known.sum() >= 2 * lags:
        counted = np.where(known[:, None], departures, 0.0)
        for lag in range(lags):
            products[lag] = counted[: length - lag].T @ counted[lag:]
            pairs[lag] = np.count_nonzero(known[: length - lag] & known[lag:])
    return {LAGS: products, PAIRS: pairs}


def check_lags(sums: Arrays, variables: int) -> None:
    """Accept a client's sums.

    Raises:
        WireError: Other arrays, other shapes, or numbers that cannot be such sums.
    """
    if set(sums) != set(SUMS) or any(sums[name].dtype != np.float64 for name in SUMS):
        raise WireError("counts: not sums over lags")
    products, pairs = sums[LAGS], sums[PAIRS]
    if pairs.ndim != 1 or products.shape != (len(pairs), variables, variables) or not len(pairs):
        raise WireError(f"counts: sums over lags of other than {variables} variables")
    if not (np.isfinite(products).all() and np.isfinite(pairs).all() and (pairs >= 0).all()):
        raise WireError("counts: sums over lags that are no numbers, or of less than no readings")


def add_lags(parts: Sequence[Arrays]) -> Arrays:
    """Return the sums over several clients.

    Raises:
        WireError: They are of different numbers of lags.
    """
    for part in parts:
        check_like(part, parts[0], "counts")
    return reduce(add, parts)


def linear_forecast(sums: Arrays, history: int, horizon: int) -> Floats:
    """The weights W, H·D × P·D, of Ŷ = X·W that a stationary series with these covariances is forecast best by.

    The normal equations C_XX W = C_XY (Yule-Walker), each covariance of its own pairs; histories and targets variable by
    variable. 0 × 0 where the sums are of nothing, of readings that never depart, or of fewer than H + P lags.
    """
    products, pairs = sums[LAGS], sums[PAIRS]
    if len(pairs) < history + horizon or not (pairs[: history + horizon] > 0).all():
        return np.zeros((0, 0))
    covariance = products / pairs[:, None, None]
    past, coming = np.arange(history), history + np.arange(horizon)
    within = _blocks(covariance, past, past)
    level = STEADY * float(np.trace(covariance[0])) / covariance.shape[1]
    if level <= 0:
        return np.zeros((0, 0))
    weights = np.linalg.solve(within + level * np.eye(len(within)), _blocks(covariance, past, coming))
    return np.asarray(weights, np.float64)


def _blocks(covariance: Floats, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Floats:
    """Cov(d_i, d_j) for places i of `rows` and j of `columns`, variable by variable."""
    apart = columns[None, :] - rows[:, None]
    table = np.where((apart < 0)[..., None, None], covariance[abs(apart)].swapaxes(-1, -2), covariance[abs(apart)])
    variables = covariance.shape[1]
    return np.asarray(table.transpose(2, 0, 3, 1).reshape(variables * len(rows), variables * len(columns)))
