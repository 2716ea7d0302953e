"""Ranking metrics of the next item (algorithms.md §2.8); pure."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

TOPS = (10, 20)


def ranks(logits: Floats, targets: NDArray[np.int64]) -> Floats:
    """1-based rank of each case's target among all items, E from E × V; the mean of their places among equals.

    Where a logit is NaN, as a diverged model's are, the rank is NaN.
    """
    own = logits[np.arange(len(targets)), targets][:, None]
    ahead, equal = (logits > own).sum(1), (logits == own).sum(1)
    places: Floats = np.where(np.isnan(logits).any(1), np.nan, ahead + (equal + 1) / 2)
    return places


def session_metrics(places: Floats, losses: Floats) -> dict[str, float]:
    """Means over the cases of HR@N, MRR@N (0 beyond N), NDCG@20 and the loss, from ranks and −log probabilities, E each.

    A rank that is NaN makes every metric of ranks NaN; without cases there are no metrics.
    """
    if not len(places):
        return {}
    metrics = {f"hr{top}": _mean_within(places, top, np.ones_like(places)) for top in TOPS}
    metrics |= {f"mrr{top}": _mean_within(places, top, 1 / places) for top in TOPS}
    metrics["ndcg20"] = _mean_within(places, 20, 1 / np.log2(places + 1))
    metrics["loss"] = float(np.mean(losses))
    return metrics


def _mean_within(places: Floats, top: int, gains: Floats) -> float:
    """Mean of each case's gain where its rank is at most `top`, of 0 beyond."""
    return float(np.mean(np.where(places > top, 0, np.where(np.isnan(places), np.nan, gains))))
