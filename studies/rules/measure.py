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

CATALOGUE = "catalogue_hr20"
"""Metric: hit rate at 20 among all valid rules, those of devices that a home has not included."""


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


def catalogue_hits(splits: Sequence[SplitHome], score: Callable[[str], NDArray[np.floating]], valid: Mask) -> Metrics:
    """Return the mean hit rate at 20 over homes, whose scores rank every valid rule of the catalogue.

    A method of homes and rules knows no devices: what it recommends is any rule that some home has.

    Args:
        splits: All homes.
        score: Home -> logits of every rule of the catalogue, F × F × R.
        valid: F × F × R, see `allowed_triples`.
    """
    tested = [split for split in splits if len(split.test.positives)]
    return mean_over_homes([{CATALOGUE: _catalogue_hits(split, score(split.home.name), valid)} for split in tested])


def _catalogue_hits(split: SplitHome, logits: NDArray[np.floating], valid: Mask) -> float:
    """Return the share of a home's test rules among its 20 best; its training rules are left out."""
    types, candidates = types_of(split), valid.copy()
    candidates[_triples(split.train.positives, types)] = False
    rules = np.argwhere(candidates)
    best = {tuple(rule) for rule in rules[np.argsort(-logits[candidates], kind="stable")[:20]]}
    tested = list(zip(*_triples(split.test.positives, types), strict=True))
    return sum(rule in best for rule in set(tested)) / len(tested)


def _triples(rules: NDArray[np.int64], types: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Return trigger types, action types and relations of rules between devices, E × 3."""
    trigger, action, relation = rules.T
    return types[trigger], types[action], relation


def validation_loss(splits: Sequence[SplitHome], score: Score) -> float:
    """Return the mean over homes of the validation examples' cross-entropy."""
    return mean_over_homes([_loss(s, score(s)) for s in splits if len(s.validation.positives)])["loss"]


def allowed_triples(splits: Sequence[SplitHome], entities: int, relations: int) -> Mask:
    """Return the rule filter over (trigger type, action type, relation), F × F × R.

    It allows triples that occur in the training rules of any home.
    """
    valid = np.zeros((entities, entities, relations), dtype=bool)
    for split in splits:
        valid[_triples(split.train.positives, types_of(split))] = True
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
