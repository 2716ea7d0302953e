"""All rows of one data set, breadth first, so that a study cut short has few splits rather than few rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

import numpy as np

from benchmarks.ratings.authors import DPSGD, Mechanism
from benchmarks.ratings.experiments import PLANNERS as TITLES
from benchmarks.ratings.experiments import Experiment
from benchmarks.ratings.sets import Setting
from benchmarks.ratings.training import Bench, Trial
from common.algorithms.planners import ADAP, ADPML, BGTplanner
from server.planning import PlannerOptions

AUTHORS_ROUNDS = 100
"""T of the authors' own scheme, at ε = 10/T a round."""

AUTHORS_SPLITS = 3
PLANNERS: tuple[PlannerOptions, ...] = (DPSGD, ADPML(), ADAP(), BGTplanner())
MECHANISMS: tuple[Mechanism, ...] = ("gaussian", "laplace")

Metrics = dict[str, float]


@dataclass
class Row:
    """One line or method: every split's metrics."""

    key: str
    title: str
    seeds: dict[int, Metrics] = field(default_factory=dict)
    curves: dict[int, dict[str, Metrics]] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    rounds: dict[int, int] = field(default_factory=dict)
    """Split -> rounds done."""
    seconds: float = 0.0
    megabytes: float = 0.0
    spent: float | None = None

    def mean(self, metric: str) -> float:
        """Over the splits."""
        return fmean(seed[metric] for seed in self.seeds.values())

    def spread(self, metric: str) -> float:
        """Standard deviation over the splits; 0 of one."""
        values = [seed[metric] for seed in self.seeds.values()]
        return stdev(values) if len(values) > 1 else 0.0

    @property
    def best(self) -> float:
        """Mean over splits of the least RMSE of any round; NaN without curves."""
        lows = [min(metrics["rmse"] for metrics in curve.values()) for curve in self.curves.values() if curve]
        return fmean(lows) if lows else float("nan")


@dataclass
class Study:
    """One data set."""

    setting: Setting
    clients: int
    items: int
    ratings: int
    empty: int
    """Clients without a single rating."""
    item_rows: tuple[float, float]
    """Mean and largest number of training ratings of a client that has any."""
    lines: dict[float, list[Row]]
    """Share held out for planners -> the lines."""
    rows: dict[str, Row]
    absent: list[str]
    """Keys of experiments without a result."""
    short: list[str]
    """Keys of those with fewer splits than planned so far, and how many."""
    failed: list[str]
    """Which experiments failed on which split, and why."""
    authors: list[Row]
    """Their own scheme under each planner and mechanism."""


def study(bench: Bench, experiments: Sequence[Experiment], most: int, *, authors: bool) -> Study:
    """Compute, or look up, every row on at most that many splits; `authors` asks for their scheme too."""
    rows = {one.key: Row(one.key, one.title) for one in experiments}
    for seed in range(most):
        for one in experiments:
            trial = bench.trial(one, seed) if seed < one.seeds else None
            if trial is not None:
                _keep(rows[one.key], seed, trial)
    sizes = bench.memory.recall(f"{bench.setting.key}-sizes", lambda: _sizes(bench))
    return Study(
        bench.setting,
        **(sizes or _sizes(bench)),
        lines={share: _lines(bench, share, min(most, splits)) for share, splits in _held_out(experiments).items()},
        rows={key: row for key, row in rows.items() if row.seeds},
        absent=[key for key, row in rows.items() if not row.seeds and not row.failures],
        short=[f"{o.key} ({len(rows[o.key].seeds)} of {o.seeds})" for o in experiments if _short(o, rows[o.key])],
        failed=[f"{key}, split {seed}: {why}" for key, row in rows.items() for seed, why in row.failures.items()],
        authors=_schemes(bench) if authors else [],
    )


def _schemes(bench: Bench) -> list[Row]:
    """The authors' scheme on some splits, breadth first; of what was run."""
    rows = {
        (planner.name, mechanism): Row(mechanism, f"{TITLES[planner.name]}, the authors' own accounting")
        for planner in PLANNERS
        for mechanism in MECHANISMS
    }
    for seed in range(AUTHORS_SPLITS):
        for planner in PLANNERS:
            for mechanism in MECHANISMS:
                if trial := bench.authors(AUTHORS_ROUNDS, seed, planner, mechanism):
                    _keep(rows[planner.name, mechanism], seed, trial)
    return [row for row in rows.values() if row.seeds]


def _sizes(bench: Bench) -> dict[str, Any]:
    counts = np.array([len(rater.items) for rater in bench.dataset.raters])
    return {
        "clients": len(counts),
        "items": len(bench.dataset.products.items),
        "ratings": int(counts.sum()),
        "empty": int((counts == 0).sum()),
        "item_rows": bench.item_rows,
    }


def _held_out(experiments: Sequence[Experiment]) -> dict[float, int]:
    """Share held out for planners -> splits on which something is measured so."""
    shares = sorted({one.held_out for one in experiments})
    return {share: max(one.seeds for one in experiments if one.held_out == share) for share in shares}


def _short(one: Experiment, row: Row) -> bool:
    return 0 < len(row.seeds) < one.seeds


def _keep(row: Row, seed: int, trial: Trial) -> None:
    if trial.failure:
        row.failures[seed] = trial.failure
        return
    done = len(row.seeds)
    row.seeds[seed], row.curves[seed] = trial.final, trial.curve
    row.rounds[seed] = trial.rounds
    row.seconds = (row.seconds * done + trial.seconds) / (done + 1)
    row.megabytes = (row.megabytes * done + trial.megabytes) / (done + 1)
    row.spent = trial.spent


def _lines(bench: Bench, held_out: float, most: int) -> list[Row]:
    rows: dict[str, Row] = {}
    for seed in range(most):
        for title, metrics in bench.lines(seed, held_out).items():
            rows.setdefault(title, Row(title, f"*line:* {title}")).seeds[seed] = metrics
    return list(rows.values())
