"""Runs of one request over seeds and options, beside each other within the memory of the machine."""

import itertools
import math
import os
import resource
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import psutil
from scipy import stats

from common.errors import ConfigError
from common.options import Scalar
from deploy.cli.output import note
from deploy.federation.apart import call_for_json
from deploy.pages.view import measure, objective_of

CONFIDENCE = 0.95
MEMORY_SHARE = 0.8
"""Share of the free memory that runs beside each other may take."""


@dataclass(frozen=True)
class Setting:
    """Values of the options that a sweep changes, and what the runs with them measured.

    Args:
        options: Key -> value.
        runs: Name of the run of each seed.
        values: Metric of the run of each seed.
        split: Split of the metric.
    """

    options: Mapping[str, Scalar]
    runs: Mapping[int, str] = field(default_factory=dict)
    values: Mapping[int, float] = field(default_factory=dict)
    split: str = "test"

    @property
    def label(self) -> str:
        """The options as they are set."""
        return " ".join(f"{key}={value}" for key, value in self.options.items()) or "as given"

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return statistics.fmean(self.values.values())

    @property
    def half(self) -> float:
        """Half of the 95 % interval of the mean over seeds, by Student's t; NaN for one seed."""
        return half_interval([*self.values.values()])

    @property
    def figure(self) -> str:
        """The mean, with its interval if there are several seeds."""
        return f"{self.mean:.4g}" + ("" if math.isnan(self.half) else f" ± {self.half:.2g}")


@dataclass(frozen=True)
class Sweep:
    """Finished sweep.

    Its settings are ordered, best mean first, by the task's objective.
    """

    task: str
    metric: str
    settings: Sequence[Setting]

    def clarity(self, setting: Setting) -> str:
        """Return how a setting compares with the best one over the same seeds, in words."""
        best = self.settings[0]
        if setting is best:
            return "best mean"
        pairs = [best.values[seed] - setting.values[seed] for seed in best.values]
        half = half_interval(pairs)
        if math.isnan(half):
            return "one seed: not comparable"
        return "worse" if abs(statistics.fmean(pairs)) > half else "no clear difference"

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per setting: its options, runs, mean, interval and comparison."""
        return [
            {
                **one.options,
                "seeds": list(one.values),
                "runs": list(one.runs.values()),
                "metric": self.metric,
                "split": one.split,
                "mean": one.mean,
                "half_interval": None if math.isnan(one.half) else one.half,
                "comparison": self.clarity(one),
            }
            for one in self.settings
        ]


def half_interval(values: Sequence[float]) -> float:
    """Return half of the 95 % interval of a mean, by Student's t; NaN for fewer than two values."""
    if len(values) < 2:
        return math.nan
    quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    return quantile * statistics.stdev(values) / math.sqrt(len(values))


def sweep(words: Sequence[str], seeds: Sequence[int], over: Mapping[str, Sequence[Scalar]], jobs: int = 0) -> Sweep:
    """Simulate every setting with every seed, in processes of their own.

    The first run shows the memory that one takes; so many then run beside each other as fit, at most one a core.

    Args:
        words: Options of `fedloom simulate`.
        seeds: Seeds of each setting.
        over: Key of an option -> its values.
        jobs: Runs beside each other; 0 chooses.

    Raises:
        ConfigError: No seed is given, or a run refuses an option.
        FedloomError: A run failed; the class is that of its exit code.
    """
    if not seeds or len({*seeds}) < len(seeds):
        raise ConfigError("a sweep needs seeds that differ, such as --seed 1,2,3")
    if given := [word for word in words if word.startswith(("--run-id", "--resume"))]:
        raise ConfigError(f"{given[0]} is of one run, and a sweep has several; remove it (--json has their names)")
    grid = [dict(zip(over, values, strict=True)) for values in itertools.product(*over.values())]
    cases = [(number, seed) for number in range(len(grid)) for seed in seeds]

    def train(case: tuple[int, int]) -> dict[str, Any]:
        number, seed = case
        sets = [f"--set={key}={value}" for key, value in grid[number].items()]
        return call_for_json(["simulate", *words, *sets, f"--seed={seed}", "--no-alone"])

    results = [train(cases[0])]
    together = jobs or fitting(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
    note(f"{len(cases)} runs, {together} beside each other")
    with ThreadPoolExecutor(together) as pool:
        results += pool.map(train, cases[1:])
    metric, settings = objective_of(task := str(results[0]["task"])), []
    for number, options in enumerate(grid):
        mine = {seed: found for (at, seed), found in zip(cases, results, strict=True) if at == number}
        values = {seed: _measured(found, metric) for seed, found in mine.items()}
        runs = {seed: str(found["run"]) for seed, found in mine.items()}
        split = values[seeds[0]][1]
        settings.append(Setting(options, runs, {seed: one for seed, (one, _) in values.items()}, split))
    sign = -1 if measure(metric).better == "higher" else 1
    return Sweep(task, metric, sorted(settings, key=lambda one: sign * one.mean))


def fitting(size: int) -> int:
    """Return how many processes of so many bytes fit into the free memory: 1 to the number of cores."""
    return max(1, min(os.cpu_count() or 1, int(MEMORY_SHARE * psutil.virtual_memory().available // max(size, 1))))


def _measured(result: Mapping[str, Any], metric: str) -> tuple[float, str]:
    """Return a run's metric on validation data if it has them, else on test data; and the split.

    Raises:
        ConfigError: It has none.
    """
    best = result["best"] if (result["best"] or {}).get("split") == "validation" else None
    metrics = best["metrics"] if best else result["metrics"]
    if metric not in metrics:
        raise ConfigError(f"run {result['run']} has no {metric}: no client has data to hold out; give more --data")
    return float(metrics[metric]), "validation" if best else "test"
