"""All rows of one setup: choose on the tuning seed, then measure seed after seed; what is not computed yet is left out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from benchmarks.rules.baselines import FLOORS, Level, count_floor, factorise
from benchmarks.rules.experiments import EVALUATE_EVERY, LOCAL_STEPS, ROUNDS, TUNING_SEED, VALIDATION_SHARE, Experiment
from benchmarks.rules.measure import Metrics, Score, catalogue_of, leaking_share, measure, validation_loss
from benchmarks.rules.training import Bench, Choice, NotYetComputed, Trial
from client.tasks.rules.data.split import SplitHome, split_homes
from common.errors import FedloomError
from common.tasks.rules.options import RulesOptions

MF_RATES = (0.003, 0.01, 0.03)

T = TypeVar("T")


@dataclass
class Row:
    """One method: what was chosen, and the test metrics of each seed."""

    key: str
    title: str
    point: str = ""
    round: int = 0
    grid: dict[str, str] = field(default_factory=dict)
    """Point -> least validation loss and its round, or why there is none."""
    seeds: dict[int, Metrics] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


@dataclass
class Study:
    """One setup."""

    setup: str
    homes: int
    entities: int
    relations: int
    rules: int
    tested_homes: int
    test_rules: int
    leaking_share: float
    rows: list[Row]
    asked_seeds: int
    absent: list[str]
    """Titles of experiments without a result."""


def study(bench: Bench, experiments: Sequence[Experiment], seeds: Sequence[int]) -> Study:
    """Compute, or look up, every row; breadth first, so that a study cut short has few seeds rather than few rows."""
    sizes = bench.memory.recall(f"{bench.setup}-sizes", lambda: _sizes(bench, seeds[0]))
    floors = [_floor_row(bench, level, seeds) for level in FLOORS]
    trained = _trained_rows(bench, experiments, seeds)
    factors = _if_computed(lambda: _factor_row(bench, seeds))
    measured = {row.key for row in trained}
    return Study(
        bench.setup,
        **(sizes or _sizes(bench, seeds[0])),
        rows=[*trained, *factors, *floors],
        asked_seeds=len(seeds),
        absent=[experiment.title for experiment in experiments if experiment.key not in measured],
    )


def _sizes(bench: Bench, seed: int) -> dict[str, Any]:
    homes, catalogue = bench.dataset.units, bench.dataset.vocabulary
    tested = [split for split in _splits(bench, seed, validation=False) if len(split.test.positives)]
    return {
        "homes": len(homes),
        "entities": len(catalogue.entities),
        "relations": len(catalogue.relations),
        "rules": sum(len(home.rules) for home in homes),
        "tested_homes": len(tested),
        "test_rules": sum(len(split.test.positives) for split in tested),
        "leaking_share": leaking_share(tested),
    }


def _trained_rows(bench: Bench, experiments: Sequence[Experiment], seeds: Sequence[int]) -> list[Row]:
    chosen: list[tuple[Experiment, Choice, Row]] = []
    for experiment in experiments:
        for choice in _if_computed(partial(bench.tune, experiment)):
            chosen.append((experiment, choice, _fresh_row(bench, experiment, choice)))
    for seed in seeds:
        for experiment, choice, row in chosen:
            for trial in _if_computed(partial(bench.trial, experiment, choice, seed)):
                _note(row, seed, trial)
    return [row for _, _, row in chosen if row.seeds]


def _fresh_row(bench: Bench, experiment: Experiment, choice: Choice) -> Row:
    grid = {point.label: bench.tuning_trial(experiment, point) for point in experiment.grid}
    described = {label: _best_of(trial) for label, trial in grid.items()}
    return Row(experiment.key, experiment.title, experiment.grid[choice.point].label, choice.round, described)


def _factor_row(bench: Bench, seeds: Sequence[int]) -> Row:
    tuned = {rate: bench.remembered(f"mf-{rate:g}-tune", partial(_tune_factors, bench, rate)) for rate in MF_RATES}
    _, rate, rounds = min((loss, rate, int(n)) for rate, trial in tuned.items() for n, loss in trial.curve.items())
    row = Row("mf", "matrix factorisation (central), Adam", f"lr {rate:g}", rounds)
    row.grid = {f"lr {r:g}": _best_of(trial) for r, trial in tuned.items()}
    for seed in seeds:
        key = f"mf-{rate:g}-{rounds}-seed{seed}"
        _note(row, seed, bench.remembered(key, partial(_test_factors, bench, rate, rounds, seed)))
    return row


def _tune_factors(bench: Bench, rate: float) -> Trial:
    started, splits = perf_counter(), _splits(bench, TUNING_SEED, validation=True)
    curve = {str(n): validation_loss(splits, score) for n, score in _factors(bench, splits, rate, ROUNDS, TUNING_SEED)}
    return Trial(curve, {}, perf_counter() - started)


def _test_factors(bench: Bench, rate: float, rounds: int, seed: int) -> Trial:
    started, splits = perf_counter(), _splits(bench, seed, validation=False)
    *_, (_, score) = _factors(bench, splits, rate, rounds, seed)
    return Trial({}, _measured(bench, splits, score), perf_counter() - started)


def _factors(bench: Bench, splits: Sequence[SplitHome], rate: float, rounds: int, seed: int) -> list[tuple[int, Score]]:
    """Scores by round, where a round has as many steps as elsewhere."""
    catalogue = bench.dataset.vocabulary
    reports = factorise(
        splits,
        len(catalogue.entities),
        len(catalogue.relations),
        rate=rate,
        steps=rounds * LOCAL_STEPS,
        report_every=EVALUATE_EVERY * LOCAL_STEPS,
        seed=seed,
    )
    return [(step // LOCAL_STEPS, score) for step, score in reports]


def _floor_row(bench: Bench, level: Level, seeds: Sequence[int]) -> Row:
    row = Row(f"counts-{level}", FLOORS[level])
    for seed in seeds:
        for trial in _if_computed(
            partial(bench.remembered, f"{row.key}-seed{seed}", partial(_test_floor, bench, level, seed))
        ):
            _note(row, seed, trial)
    return row


def _test_floor(bench: Bench, level: Level, seed: int) -> Trial:
    started, splits, catalogue = perf_counter(), _splits(bench, seed, validation=False), bench.dataset.vocabulary
    score = count_floor(splits, len(catalogue.entities), len(catalogue.relations), level)
    return Trial({}, _measured(bench, splits, score), perf_counter() - started)


def _measured(bench: Bench, splits: Sequence[SplitHome], score: Score) -> Metrics:
    catalogue = bench.dataset.vocabulary
    return measure(splits, score, catalogue_of(splits, len(catalogue.entities), len(catalogue.relations)))


def _splits(bench: Bench, seed: int, *, validation: bool) -> tuple[SplitHome, ...]:
    options = RulesOptions(negatives=1, validation_share=VALIDATION_SHARE if validation else 0.0)
    return split_homes(bench.dataset.units, len(bench.dataset.vocabulary.relations), options, seed)


def _note(row: Row, seed: int, trial: Trial) -> None:
    row.seconds.append(trial.seconds)
    if trial.failure:
        row.failures[seed] = trial.failure
    else:
        row.seeds[seed] = trial.metrics


def _best_of(trial: Trial) -> str:
    if not trial.curve:
        return "diverges"
    number = min(trial.curve, key=lambda key: trial.curve[key])
    return f"{trial.curve[number]:.3f} (round {number})"


def _if_computed(compute: Callable[[], T]) -> list[T]:
    """The result, or nothing if it is not there and must not be computed, or if no point of a grid trains."""
    try:
        return [compute()]
    except (NotYetComputed, FedloomError):
        return []
