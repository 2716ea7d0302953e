"""Errors of predicted ratings, as shares of the scale (algorithms.md §4.7); pure functions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Shares = NDArray[np.floating[Any]]

LIKED = 0.5
"""Smallest rating, and smallest prediction, that counts as liked."""


def rating_metrics(predicted: Shares, truth: Shares) -> tuple[dict[str, float], dict[str, float]]:
    """Return RMSE, MAE, loss (squared error) and F1, and the weights that pool them over clients.

    The weighted mean over clients (of squares for RMSE) equals the metric of all ratings together. The weight of
    F1 = 2TP/(2TP + FP + FN) is its denominator. Metrics are absent without ratings, F1 is absent without a positive.

    Args:
        predicted: Predicted ratings, n.
        truth: True ratings, n.
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
    """Return F1 = 2TP/(2TP + FP + FN) of liked items and its denominator; (0, 0) without a positive."""
    predicted_liked, truly_liked = np.asarray(predicted) >= LIKED, np.asarray(truth) >= LIKED
    hits, weight = 2.0 * int((predicted_liked & truly_liked).sum()), float(predicted_liked.sum() + truly_liked.sum())
    return (hits / weight if weight else 0.0), weight
