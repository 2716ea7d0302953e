"""Test metrics of a scorer of rules over all homes, with and without rule filter and isolated nodes."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from client.tasks.rules.data.homes import SplitHome
from common.tasks.rules.metrics import Mask, home_metrics
from studies.rules.isolation import isolated, without_isolated

Score = Callable[[SplitHome], NDArray[np.floating]]
"""Home -> logits of every possible rule, N × N × R."""

Metrics = dict[str, float]

FILTERED, CONNECTED = "filtered_", "connected_"
"""Prefixes: hit rates among valid rules only; metrics on test rules between connected nodes only."""


def measure(splits: Sequence[SplitHome], score: Score, valid: Mask) -> Metrics:
    """Return means over the homes that have a test rule.

    Plain keys are those of `home_metrics`. `filtered_hrN` ranks valid rules only. `connected_…` leaves out test rules with
    an end that no training rule touches, since they leak (see `SplitHome.isolated`).

    Args:
        splits: All homes.
        score: Logits of a home.
        valid: F × F × R, see `allowed_triples`.
    """
    return mean_over_homes([_measure_home(split, score(split), valid) for split in splits if len(split.test.positives)])


def validation_loss(splits: Sequence[SplitHome], score: Score) -> float:
    """Return the mean over homes of the validation examples' cross-entropy."""
    return mean_over_homes([_loss(s, score(s)) for s in splits if len(s.validation.positives)])["loss"]


def allowed_triples(splits: Sequence[SplitHome], entities: int, relations: int) -> Mask:
    """Return the rule filter over (trigger type, action type, relation), F × F × R.

    It allows triples that occur in the training rules of any home.
    """
    valid = np.zeros((entities, entities, relations), dtype=bool)
    for split in splits:
        types = types_of(split)
        trigger, action, relation = split.train.positives.T
        valid[types[trigger], types[action], relation] = True
    return valid


def types_of(split: SplitHome) -> NDArray[np.int64]:
    """Return the type of each device, N."""
    return np.array([device.entity for device in split.home.devices], dtype=np.int64)


def leaking_share(splits: Sequence[SplitHome]) -> float:
    """Return the share of all test rules with an end that no training rule touches."""
    return float(np.concatenate([isolated(split, split.test.positives) for split in splits]).mean())


def mean_over_homes(rows: Sequence[Mapping[str, float]]) -> Metrics:
    """Return the mean of every key over the rows that have it; a NaN is kept, which shows a diverged home."""
    keys = {key: None for row in rows for key in row}
    return {key: _mean([row[key] for row in rows if key in row]) for key in keys}


def _measure_home(split: SplitHome, logits: NDArray[np.floating], valid: Mask) -> Metrics:
    types = types_of(split)
    here = valid[types[:, None], types[None, :]]
    row = _metrics(split, logits)
    row |= {FILTERED + key: value for key, value in _metrics(split, logits, here).items() if key.startswith("hr")}
    return row | {CONNECTED + key: value for key, value in _metrics(without_isolated(split), logits).items()}


def _metrics(split: SplitHome, logits: NDArray[np.floating], valid: Mask | None = None) -> Metrics:
    test = split.test
    return home_metrics(logits, split.train.positives, test.positives, test.negatives, valid=valid) or {}


def _loss(split: SplitHome, logits: NDArray[np.floating]) -> Metrics:
    positive, negative = (logits[tuple(edges.T)] for edges in (split.validation.positives, split.validation.negatives))
    return {"loss": float(np.logaddexp(0, np.concatenate([-positive, negative])).mean())}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
