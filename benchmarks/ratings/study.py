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
from common.methods.planners import ADAP, ADPML, BGTplanner, PlannerOptions

AUTHORS_ROUNDS = 100
"""T of the authors' own scheme, at ε = 10/T a round."""

AUTHORS_SPLITS = 3
"""Splits of these rows, none of which is an `Experiment`."""

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
    shares: dict[int, float] = field(default_factory=dict)
    """Split -> share of the budget that was spent; none of it where nothing was planned."""
    seconds: float = 0.0
    megabytes: float = 0.0

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

    @property
    def span(self) -> str:
        """Rounds done: `20`, or `17–20` where splits differ."""
        done = sorted(set(self.rounds.values()))
        return "–".join(str(count) for count in (done if len(done) < 2 else (done[0], done[-1])))


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
    """Keys of rows without a result."""
    short: list[str]
    """Keys of those with fewer splits than planned so far, and how many."""
    failed: list[str]
    """Which experiments failed on which split, and why."""
    authors: dict[tuple[str, Mechanism], Row]
    """Planner and mechanism -> their own scheme under these."""


def study(bench: Bench, experiments: Sequence[Experiment], most: int, *, authors: bool) -> Study:
    """Compute, or look up, every row on at most that many splits; `authors` asks for their scheme too."""
    rows = {one.key: Row(one.key, one.title) for one in experiments}
    for seed in range(most):
        for one in experiments:
            trial = bench.trial(one, seed) if seed < one.seeds else None
            if trial is not None:
                _keep(rows[one.key], seed, trial)
                if trial.spent is not None and not one.at_true_cost:
                    rows[one.key].shares[seed] = one.share(trial.spent)
    sizes = bench.memory.recall(f"{bench.setting.key}-sizes", lambda: _sizes(bench))
    schemes = _schemes(bench) if authors else {}
    planned = [(rows[one.key], one.seeds) for one in experiments]
    planned += [(row, AUTHORS_SPLITS) for row in schemes.values()]
    return Study(
        bench.setting,
        **(sizes or _sizes(bench)),
        lines={share: _lines(bench, share, min(most, splits)) for share, splits in _held_out(experiments).items()},
        rows={key: row for key, row in rows.items() if row.seeds},
        absent=[row.key for row, _ in planned if not row.seeds and not row.failures],
        short=[f"{row.key} ({len(row.seeds)} of {splits})" for row, splits in planned if 0 < len(row.seeds) < splits],
        failed=[f"{row.key}, split {seed}: {why}" for row, _ in planned for seed, why in row.failures.items()],
        authors={about: row for about, row in schemes.items() if row.seeds},
    )


def _schemes(bench: Bench) -> dict[tuple[str, Mechanism], Row]:
    """The authors' scheme on some splits, breadth first."""
    rows: dict[tuple[str, Mechanism], Row] = {}
    for planner in PLANNERS:
        for mechanism in MECHANISMS:
            about = f"authors-{planner.name}-{mechanism}", f"{TITLES[planner.name]}, the authors' own accounting"
            rows[planner.name, mechanism] = Row(*about)
    for seed in range(AUTHORS_SPLITS):
        for planner in PLANNERS:
            for mechanism in MECHANISMS:
                if trial := bench.authors(AUTHORS_ROUNDS, seed, planner, mechanism):
                    _keep(rows[planner.name, mechanism], seed, trial)
    return rows


def _sizes(bench: Bench) -> dict[str, Any]:
    counts = np.array([len(rater.items) for rater in bench.dataset.units])
    return {
        "clients": len(counts),
        "items": len(bench.dataset.vocabulary.items),
        "ratings": int(counts.sum()),
        "empty": int((counts == 0).sum()),
        "item_rows": bench.item_rows,
    }


def _held_out(experiments: Sequence[Experiment]) -> dict[float, int]:
    """Share held out for planners -> splits on which something is measured so."""
    shares = sorted({one.held_out for one in experiments})
    return {share: max(one.seeds for one in experiments if one.held_out == share) for share in shares}


def _keep(row: Row, seed: int, trial: Trial) -> None:
    if trial.failure:
        row.failures[seed] = trial.failure
        return
    done = len(row.seeds)
    row.seeds[seed], row.curves[seed] = trial.final, trial.curve
    row.rounds[seed] = trial.rounds
    row.seconds = (row.seconds * done + trial.seconds) / (done + 1)
    row.megabytes = (row.megabytes * done + trial.megabytes) / (done + 1)


def _lines(bench: Bench, held_out: float, most: int) -> list[Row]:
    rows: dict[str, Row] = {}
    for seed in range(most):
        for title, metrics in bench.lines(seed, held_out).items():
            rows.setdefault(title, Row(title, f"*line:* {title}")).seeds[seed] = metrics
    return list(rows.values())
