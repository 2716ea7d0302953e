"""Errors of predicted ratings, shares of the scale (algorithms.md §4.7); pure."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Shares = NDArray[np.floating[Any]]

LIKED = 0.5
"""From here on a rating, and a prediction, counts as 'likes it'."""


def rating_metrics(predicted: Shares, truth: Shares) -> tuple[dict[str, float], dict[str, float]]:
    """RMSE, MAE, loss (the squared error) and F1, and the weights under which clients' values pool.

    The mean of squares of RMSEs, and the mean of the others, over clients with these weights is the value of all ratings
    together: F1 = 2TP/(2TP + FP + FN), so its weight is that denominator. Without ratings, or for F1 without a positive,
    there is none.

    Args:
        predicted: n.
        truth: n.
    """
    if not len(truth):
        return {}, {}
    error = np.asarray(predicted, np.float64) - truth
    square = float(np.mean(error**2))
    metrics = {"rmse": square**0.5, "mae": float(np.mean(np.abs(error))), "loss": square}
    weights = dict.fromkeys(metrics, float(len(truth)))
    score, weight = f1(predicted, truth)
    return (metrics | {"f1": score}, weights | {"f1": weight}) if weight else (metrics, weights)


def f1(predicted: Shares, truth: Shares) -> tuple[float, float]:
    """2TP/(2TP + FP + FN) of 'likes it', and that denominator; (0, 0) where nothing is liked or said to be."""
    says, is_so = np.asarray(predicted) >= LIKED, np.asarray(truth) >= LIKED
    hits, whole = 2.0 * int((says & is_so).sum()), float(says.sum() + is_so.sum())
    return (hits / whole if whole else 0.0), whole
