"""Comparison of two models unit by unit on held-out data, and the choice between them.

Only sums over units may leave the client.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from client.tasks.learner import ComparesUnits, Learner
from common.arrays import Array, Arrays, Floats
from common.config.run import RunConfig
from common.metrics import SUMS_ALONE, USED, power_of
from common.tasks.registry import TASKS
from common.tasks.spec import ALONE, BOTH, PERSONAL, SHARED, SIMPLE, SUMS, AnyTask, uses_key
from common.wire.messages import EvaluateReply, Metrics

Units = tuple[Floats, Mapping[str, Floats]]
"""Metric of each unit, by what the client uses and by each of `TaskSpec.rivals`."""

MEASURED = "measured.json"
"""Name of the document in a run's state: metrics of the finished model; private."""


@dataclass(frozen=True)
class Measured:
    """Metrics of the finished model on a client's own held-out data.

    Args:
        metrics: Metrics, as in `EvaluateReply`.
        weights: Numbers of records behind the metrics.
        units: Value of the compared metric of each unit, in the order of the data; None without held-out data.
        rivals: The same of each of `TaskSpec.rivals`.
        uses: Name of each model and baseline that the client may use -> True if it does; empty without a choice.
    """

    metrics: Metrics = field(default_factory=dict)
    weights: Metrics = field(default_factory=dict)
    units: list[float | None] = field(default_factory=list)
    rivals: dict[str, list[float | None]] = field(default_factory=dict)
    uses: dict[str, bool] = field(default_factory=dict)


def measure_units(
    learner: Learner,
    choice: str,
    models: Mapping[str, Arrays],
    statics: Arrays,
    split: str,
    *,
    with_rivals: bool = True,
) -> Units:
    """Return the compared metric of each unit; NaN without held-out data.

    Args:
        learner: Learner of the client.
        choice: Prefix of a model, or name of a baseline.
        models: Prefix of metrics -> model of the client.
        statics: Summed statistics of the run.
        split: Data split of the measurement.
        with_rivals: False if no rival is compared.
    """
    task, metric = TASKS[learner.task], TASKS[learner.task].objective.metric
    if not isinstance(learner, ComparesUnits) or task.comparison is None:
        return np.zeros(0), {}
    baselines = learner.baseline_values(statics, split) if with_rivals or choice not in models else {}
    used = learner.record_values(models[choice], statics, split) if choice in models else baselines[choice]
    rivals = {name: unit_means(baselines[name], metric) for name in task.rivals if name in baselines}
    return unit_means(used, metric), rivals


def unit_means(records: Sequence[Floats], metric: str) -> Floats:
    """Return the metric of each unit from its records; NaN without any."""
    power = power_of(metric)
    return np.array([float(np.mean(values) ** (1 / power)) if len(values) else np.nan for values in records])


def paired_sums(first: Floats, other: Floats, *, higher_is_better: bool) -> Array:
    """Return n, Σd, Σd², wins and losses for d = first − other over units with both values."""
    both = np.isfinite(first) & np.isfinite(other)
    d = (first - other)[both]
    gain = d if higher_is_better else -d
    return np.array([len(d), d.sum(), (d**2).sum(), (gain > 0).sum(), (gain < 0).sum()], np.float64)


def to_paired(task: str, units: Floats, rivals: Mapping[str, Floats], uses: Mapping[str, bool]) -> Arrays:
    """Return the sums that a reply has; empty if the task compares no units."""
    spec = TASKS[task]
    if spec.comparison is None or not len(units):
        return {}
    counts = count_used(uses, int(np.isfinite(units).sum()))
    paired = {spec.paired_key(SIMPLE, name): _differences(spec, units, rival) for name, rival in rivals.items()}
    return {**paired, **counts}


def pair_with_alone(task: str, shared: Measured, alone: Measured) -> Arrays:
    """Return the sums of differences to a model trained alone, and to the better of it and each rival.

    They are empty if no unit has both values.
    """
    spec, units, other = TASKS[task], values(shared.units), values(alone.units)
    if units.shape != other.shape or not np.isfinite(units - other).any():
        return {}
    paired = {ALONE: _differences(spec, units, other)}
    for name in spec.rivals:
        rival = values(shared.rivals.get(name, [None] * len(other)))
        better = np.fmax(other, rival) if spec.higher_is_better else np.fmin(other, rival)
        better[~np.isfinite(other)] = np.nan
        paired[spec.paired_key(BOTH, name)] = _differences(spec, units, better)
    return paired


def _differences(task: AnyTask, units: Floats, other: Floats) -> Array:
    return paired_sums(units, other, higher_is_better=task.higher_is_better)


def has_units(measured: Measured) -> bool:
    """Return True if a unit has held-out data."""
    return any(value is not None for value in measured.units)


def to_document(reply: EvaluateReply, units: Floats, rivals: Mapping[str, Floats], uses: dict[str, bool]) -> bytes:
    """Return the document of a client's own measurement."""
    finite = {name: value for name, value in reply.metrics.items() if np.isfinite(value)}
    listed = {name: _finite(rival) for name, rival in rivals.items()}
    return json.dumps(vars(Measured(finite, reply.weights, _finite(units), listed, uses))).encode()


def _finite(units: Floats) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in units.tolist()]


def from_document(content: bytes) -> Measured:
    """Return the measurement in a document; an empty one if there is none or it cannot be read."""
    try:
        return Measured(**json.loads(content))
    except (ValueError, TypeError):
        return Measured()


def values(units: Sequence[float | None]) -> Floats:
    """Return the values of units as an array; NaN for None."""
    return np.array([np.nan if value is None else value for value in units], np.float64)


EVIDENCE = 2.0
"""Least Σd/√Σd² of the gains d of held-out records from which a client leaves the model of its run.

If gains are symmetric around 0, chance reaches it with a probability of at most e⁻² = .14, for any number of records
(Efron 1969), and of about .02 for many. Fewer than four records never reach it.
"""


def evidence(gains: Floats) -> float:
    """Return Σd/√Σd², the sum of the gains over its scale; 0 without any."""
    scale = float(np.sqrt(np.square(gains).sum()))
    return float(gains.sum()) / scale if scale else 0.0


def choose(config: RunConfig, learner: Learner, models: Mapping[str, Arrays], statics: Arrays, split: str) -> str:
    """Return the prefix of the model, or the name of the baseline, that is best on held-out data.

    The first model stays unless another one or a baseline gains `EVIDENCE` on it. In runs with noise a tie is no reason
    for a model that does not weigh its noise: there the first baseline stays unless another choice has a higher mean.
    The choice never leaves the client, so it costs no privacy.

    Args:
        config: Configuration of the run.
        learner: Learner of the client.
        models: Prefix of metrics -> model of the client, the model of the run first.
        statics: Summed statistics of the run.
        split: Held-out data that decide.
    """
    first, task = next(iter(models)), TASKS[config.task]
    if not isinstance(learner, ComparesUnits) or task.comparison is None:
        return first
    baselines = learner.baseline_values(statics, split)
    values = {prefix: learner.record_values(model, statics, split) for prefix, model in models.items()}
    records = {name: np.concatenate([np.zeros(0), *units]) for name, units in {**values, **baselines}.items()}
    doubted = config.privacy.unit != "none" and not task.weighs_noise(config.model)
    incumbent, least = (next(iter(baselines)), 0.0) if doubted and baselines else (first, EVIDENCE)
    sign = 1.0 if task.higher_is_better else -1.0
    rivals = {name: sign * each for name, each in records.items() if len(each) and np.isfinite(each).all()}
    if incumbent in rivals:  # else it diverged, or nothing is held out
        start = rivals[incumbent]
        rivals = {n: each for n, each in rivals.items() if (e := evidence(each - start)) > 0 and e >= least}
    return max(rivals, key=lambda name: float(rivals[name].mean()), default=incumbent)


def choose_answer(config: RunConfig, learner: Learner, models: Mapping[str, Arrays], statics: Arrays) -> str:
    """Return what answers queries of a client, by `choose` on validation data.

    Without validation data the model of the run answers, whose metrics are measured. In runs with noise, which may leave
    nothing of the model, test data decide then; nothing is measured by them.
    """
    if config.task_options.validation_share:
        return choose(config, learner, models, statics, "validation")
    return choose(config, learner, models, statics, "test") if config.privacy.unit != "none" else next(iter(models))


def measure_used(
    config: RunConfig, choice: str, models: Collection[str], measured: tuple[Metrics, Metrics]
) -> tuple[Metrics, Metrics]:
    """Return the metrics of what the client uses, and their weights.

    Args:
        config: Configuration of the run.
        choice: Prefix of a model, or name of a baseline.
        models: Prefixes of the client's models.
        measured: Metrics of models and baselines on test data, and their weights.
    """
    baselines, (metrics, weights) = TASKS[config.task].baselines, measured
    keys = dict.fromkeys(key for baseline in baselines.values() for key in baseline)
    names = {key: f"{choice}{key}" if choice in models else baselines[choice].get(key, "") for key in keys}
    names = {f"{USED.prefix}{key}": name for key, name in names.items() if name in metrics}
    return {key: metrics[name] for key, name in names.items()}, {key: weights[name] for key, name in names.items()}


def uses_of(task: str, choice: str, models: Sequence[str], *, is_personal: bool) -> dict[str, bool]:
    """Return the name of each model and baseline that a client may use -> True if it does.

    Args:
        task: Name of the task.
        choice: Prefix of a model, or name of a baseline.
        models: Prefixes of the client's models, that of the run first.
        is_personal: True if that is a personalized one.
    """
    names = dict(zip((PERSONAL, SHARED) if is_personal else (SHARED,), models, strict=False))
    names |= {SUMS: SUMS_ALONE.prefix} if SUMS_ALONE.prefix in models else {}
    return {
        name: of == choice
        for name, of in {**names, **{baseline: baseline for baseline in TASKS[task].baselines}}.items()
    }


def count_used(uses: Mapping[str, bool], units: int) -> Arrays:
    """Return the numbers of units by what they use: n, and those that use it or do not."""
    return {uses_key(n): np.array([units, 0, 0, units * used, units * (not used)], float) for n, used in uses.items()}


def describe_choice(baseline: str) -> tuple[str, ...]:
    """Return the remark of a command that answers by a baseline; none without one."""
    return (
        (f"{baseline} is better than the model on held-out parts of these data; {baseline} answers",)
        if baseline
        else ()
    )
