"""Comparison of two models unit by unit on held-out data, and the choice between them.

Only sums over units may leave the client.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from client.tasks.learner import ComparesUnits, Learner
from common.arrays import Array, Arrays, Floats
from common.config.run import RunConfig
from common.metrics import USED
from common.tasks.registry import TASKS
from common.tasks.spec import ALONE, BOTH, SIMPLE
from common.wire.messages import EvaluateReply, Metrics

MEASURED = "measured.json"
"""Name of the document in a run's state: metrics of the finished model; private."""


@dataclass(frozen=True)
class Measured:
    """Metrics of the finished model on a client's own held-out data.

    Args:
        metrics: Metrics, as in `EvaluateReply`.
        weights: Numbers of records behind the metrics.
        units: Value of the compared metric of each unit, in the order of the data; None without held-out data.
        simple: The same of the simple baseline.
    """

    metrics: Metrics = field(default_factory=dict)
    weights: Metrics = field(default_factory=dict)
    units: list[float | None] = field(default_factory=list)
    simple: list[float | None] = field(default_factory=list)


def measure_units(learner: Learner, model: Arrays, statics: Arrays, split: str) -> tuple[Floats, Floats]:
    """Return the compared metric of each unit, of the model and of the simple baseline; may be empty."""
    if not isinstance(learner, ComparesUnits) or TASKS[learner.task].comparison is None:
        return np.zeros(0), np.zeros(0)
    return learner.unit_values(model, statics, split), learner.baseline_values(statics, split)


def paired_sums(first: Floats, other: Floats, *, higher_is_better: bool) -> Array:
    """Return n, Σd, Σd², wins and losses for d = first − other over units with both values."""
    both = np.isfinite(first) & np.isfinite(other)
    d = (first - other)[both]
    gain = d if higher_is_better else -d
    return np.array([len(d), d.sum(), (d**2).sum(), (gain > 0).sum(), (gain < 0).sum()], np.float64)


def to_paired(task: str, units: Floats, simple: Floats) -> Arrays:
    """Return the sums that a reply has; empty if the task compares no units."""
    spec = TASKS[task]
    if spec.comparison is None or not len(units):
        return {}
    return {SIMPLE: paired_sums(units, simple, higher_is_better=spec.higher_is_better)}


def pair_with_alone(task: str, shared: Measured, alone: Measured) -> Arrays:
    """Return the sums of differences to a model trained alone, and to the better of it and the baseline.

    They are empty if no unit has both values.
    """
    units, other, simple = values(shared.units), values(alone.units), values(shared.simple)
    if units.shape != other.shape or not np.isfinite(units - other).any():
        return {}
    higher_is_better = TASKS[task].higher_is_better
    simple = simple if simple.shape == other.shape else np.full_like(other, np.nan)
    better = np.fmax(other, simple) if higher_is_better else np.fmin(other, simple)
    better[~np.isfinite(other)] = np.nan
    return {
        key: paired_sums(units, each, higher_is_better=higher_is_better)
        for key, each in ((ALONE, other), (BOTH, better))
    }


def has_units(measured: Measured) -> bool:
    """Return True if a unit has held-out data."""
    return any(value is not None for value in measured.units)


def to_document(reply: EvaluateReply, units: Floats, simple: Floats) -> bytes:
    """Return the document of a client's own measurement."""
    values = [[value if np.isfinite(value) else None for value in row.tolist()] for row in (units, simple)]
    finite = {name: value for name, value in reply.metrics.items() if np.isfinite(value)}
    return json.dumps(vars(Measured(finite, reply.weights, *values))).encode()


def from_document(content: bytes) -> Measured:
    """Return the measurement in a document; an empty one if there is none or it cannot be read."""
    try:
        return Measured(**json.loads(content))
    except (ValueError, TypeError):
        return Measured()


def values(units: Sequence[float | None]) -> Floats:
    """Return the values of units as an array; NaN for None."""
    return np.array([np.nan if value is None else value for value in units], np.float64)


def offers_baseline(config: RunConfig) -> bool:
    """Return True if clients of the run choose between its model and the baseline.

    Models trained without noise, and tasks whose models fall back by themselves, are used as they are.
    """
    comparison = TASKS[config.task].comparison
    return config.privacy.unit != "none" and comparison is not None and comparison.answers


def prefers_baseline(config: RunConfig, learner: Learner, model: Arrays, statics: Arrays) -> bool:
    """Return True if noise left the model no better than the baseline on own held-out data.

    Validation data decide, and the baseline answers a client that has none; test data decide where the run held out no
    validation data. The choice never leaves the client, so it costs no privacy.
    """
    if not offers_baseline(config):
        return False
    for split in ("validation", "test"):
        units, simple = measure_units(learner, model, statics, split)
        if (measured := np.isfinite(simple)).any():
            if split == "test" and config.task_options.validation_share:
                return True
            difference = float((units - simple)[measured].mean())
            gain = difference if TASKS[config.task].higher_is_better else -difference
            return not gain > 0  # NaN: the model diverged
    return False


def measure_used(
    config: RunConfig, learner: Learner, model: Arrays, statics: Arrays, measured: tuple[Metrics, Metrics]
) -> tuple[Metrics, Metrics]:
    """Return the metrics of what the client uses, and their weights; empty unless validation data decide.

    `measured` are the metrics of model and baseline on test data, and their weights.
    """
    task, (metrics, weights) = TASKS[config.task], measured
    if not offers_baseline(config) or not config.task_options.validation_share:
        return {}, {}
    by_baseline = prefers_baseline(config, learner, model, statics)
    pairs = {f"{USED.prefix}{key}": simple if by_baseline else key for key, simple in task.simple.items()}
    pairs = {key: used for key, used in pairs.items() if used in metrics}
    return {key: metrics[used] for key, used in pairs.items()}, {key: weights[used] for key, used in pairs.items()}


def describe_choice(task: str) -> str:
    """Return the remark of a command that answers by the baseline."""
    comparison = TASKS[task].comparison
    assert comparison is not None  # there is a baseline to choose
    name = comparison.baseline
    return f"privacy noise left the model no better than {name} on held-out data; {name} answers, which sends nothing"
