"""All rows of one data set: choose on the tuning seed, then measure seed after seed; what is not computed is left out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.sessions.experiments import CENTRAL_RATES, EXPERIMENTS, TUNING_SEED, Experiment
from benchmarks.sessions.sets import SETTINGS, Setting
from benchmarks.sessions.training import Bench, Trial, label
from client.tasks.sessions.data.diversity import jaccard_distance, visited

FIRST = SETTINGS[0].key
"""The set on which verdicts between methods are sought; only there some methods get more seeds."""

PAIRS = 20_000
"""Pairs of clients that the Jaccard distance is the mean of."""


@dataclass
class Row:
    """One method: what was chosen, and every seed's metrics after the last round."""

    key: str
    title: str
    point: str = ""
    grid: dict[str, float] = field(default_factory=dict)
    """Point -> HR@20 on the validation cases of the tuning seed; negative where it does not train."""
    seeds: dict[int, dict[str, float]] = field(default_factory=dict)
    curves: dict[int, dict[str, dict[str, float]]] = field(default_factory=dict)
    seconds: float = 0.0
    megabytes_a_round: float = 0.0

    def mean(self, metric: str) -> float:
        """Over the seeds."""
        return fmean(seed[metric] for seed in self.seeds.values())

    def rounds_to(self, share: float) -> float:
        """Mean over seeds of the first evaluated round with that share of the final HR@20; 0 without curves."""
        firsts = [_first_round(curve, share * self.seeds[seed]["hr20"]) for seed, curve in self.curves.items()]
        return fmean(firsts) if firsts else 0.0


@dataclass
class Study:
    """One data set."""

    setting: Setting
    clients: int
    items: int
    sessions: int
    jaccard: float
    """Mean pairwise Jaccard distance of the clients' item sets, from a sample of pairs."""
    rows: list[Row]
    absent: list[str]
    """Titles of experiments without a result."""


def study(bench: Bench, experiments: Sequence[Experiment], seeds: Sequence[int]) -> Study:
    """Compute, or look up, every row."""
    lines = _lines(bench, seeds)
    central = [row for row in [_central(bench, seeds)] if row.seeds]
    trained = [_trained(bench, one, seeds) for one in experiments if one.key in bench.setting.rows]
    sizes = bench.memory.recall(f"{bench.setting.key}-sizes", lambda: _sizes(bench))
    return Study(
        bench.setting,
        **(sizes or _sizes(bench)),
        rows=lines + central + [row for row in trained if row.seeds],
        absent=[row.title for row in trained if not row.seeds],
    )


def _sizes(bench: Bench) -> dict[str, Any]:
    visitors = bench.dataset.units
    return {
        "clients": len(visitors),
        "items": len(bench.dataset.vocabulary.items),
        "sessions": sum(len(visitor.sessions) for visitor in visitors),
        "jaccard": jaccard_distance([visited(visitor) for visitor in visitors], PAIRS, np.random.default_rng(0)),
    }


def _trained(bench: Bench, experiment: Experiment, seeds: Sequence[int]) -> Row:
    like = next((one for one in EXPERIMENTS if one.key == experiment.tuned_as), experiment)
    point, grid = bench.tuned(like)
    row = Row(experiment.key, experiment.title, label(point), grid if like is experiment else {})
    points = len(like.grid or bench.setting.grid)
    if len(grid) < points > 1:
        return row
    wanted = [*seeds, *range(len(seeds), len(seeds) + experiment.more_seeds * (bench.setting.key == FIRST))]
    found = {seed: bench.trial(experiment, point, seed, validation=False) for seed in wanted}
    done: dict[int, Trial] = {seed: trial for seed, trial in found.items() if trial is not None and trial.curve}
    row.seeds = {seed: trial.final for seed, trial in done.items()}
    row.curves = {seed: trial.curve for seed, trial in done.items()}
    row.seconds = fmean([trial.seconds for trial in done.values()] or [0.0])
    row.megabytes_a_round = fmean([trial.megabytes_a_round for trial in done.values()] or [0.0])
    return row


def _central(bench: Bench, seeds: Sequence[int]) -> Row:
    """Rate and epoch by HR@20 on the tuning seed's validation cases."""
    tuned = {rate: bench.central(rate, TUNING_SEED, validation=True) for rate in CENTRAL_RATES}
    row = Row("central", "SR-GNN, central, Adam")
    found = {(rate, e): m["hr20"] for rate, trial in tuned.items() if trial for e, m in trial.curve.items()}
    if any(trial is None for trial in tuned.values()):
        return row
    rate, epoch = max(found, key=lambda point: found[point])
    row.point, row.grid = f"lr {rate:g}, {epoch} epochs", {f"lr {r:g}, {e} epochs": hr for (r, e), hr in found.items()}
    done = {seed: bench.central(rate, seed, validation=False) for seed in seeds}
    row.seeds = {seed: trial.curve[epoch] for seed, trial in done.items() if trial}
    row.seconds = fmean([trial.seconds for trial in done.values() if trial] or [0.0])
    return row


def _lines(bench: Bench, seeds: Sequence[int]) -> list[Row]:
    rows: dict[str, Row] = {}
    for seed in seeds:
        for title, metrics in (bench.lines(seed) or {}).items():
            rows.setdefault(title, Row(title, f"*line:* {title}")).seeds[seed] = metrics
    return list(rows.values())


def _first_round(curve: dict[str, dict[str, float]], wanted: float) -> int:
    return min(int(number) for number, metrics in curve.items() if metrics["hr20"] >= wanted)
