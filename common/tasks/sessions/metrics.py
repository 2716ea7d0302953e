"""Ranking metrics of the next item (algorithms.md §2.8); pure functions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Ints

Floats = NDArray[np.floating[Any]]

TOPS = (10, 20)


def ranks(logits: Floats, targets: Ints) -> Floats:
    """Return the 1-based rank of each case's target among all items, E from E × V.

    Ties get the mean of their ranks. The rank is NaN if a logit of the case is NaN (diverged model).
    """
    target_logits = logits[np.arange(len(targets)), targets][:, None]
    ahead, equal = (logits > target_logits).sum(1), (logits == target_logits).sum(1)
    places: Floats = np.where(np.isnan(logits).any(1), np.nan, ahead + (equal + 1) / 2)
    return places


def session_metrics(places: Floats, losses: Floats) -> dict[str, float]:
    """Return means over E cases of HR@N, MRR@N (0 beyond N), NDCG@20 and the loss; {} without cases.

    A NaN rank makes every ranking metric NaN.

    Args:
        places: Rank of each target, E.
        losses: −log probability of each target, E.
    """
    if not len(places):
        return {}
    metrics = {f"hr{top}": _mean_within(places, top, np.ones_like(places)) for top in TOPS}
    metrics |= {f"mrr{top}": _mean_within(places, top, 1 / places) for top in TOPS}
    metrics["ndcg20"] = _mean_within(places, 20, 1 / np.log2(places + 1))
    metrics["loss"] = float(np.mean(losses))
    return metrics


def _mean_within(places: Floats, top: int, values: Floats) -> float:
    """Return the mean of `values`, with 0 for ranks beyond `top`."""
    return float(np.mean(np.where(places > top, 0, np.where(np.isnan(places), np.nan, values))))
