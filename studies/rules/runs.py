"""Runs of the rules study: federated methods, matrix factorization and count baselines on both setups."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from torch import Generator

from client.data.dataset import AnyDataset
from client.data.read import read_all
from client.tasks.rules.data.homes import SplitHome, split_homes
from client.tasks.rules.data.reader import read_homes
from client.tasks.rules.learner import RulesLearner
from common.arrays import Arrays
from common.models import split_statics, tensors
from common.tasks.rules.metrics import Mask
from common.tasks.rules.options import RulesOptions
from common.tasks.rules.task import TASK
from fedloom import simulate
from studies.harness.bench import Bench, FinishedRun
from studies.harness.experiment import Settings
from studies.harness.row import Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.harness.tuning import Tuning
from studies.rules import curves, demo_homes, dissimilarity, drift
from studies.rules.baselines import count_baseline
from studies.rules.convolution import Convolved
from studies.rules.experiments import (
    COMMAND,
    CONVOLVED,
    COUNTS,
    EVALUATE_EVERY,
    EXPERIMENTS,
    FACTORS,
    LOCAL_STEPS,
    ROUNDS,
    SETS,
    STACKED,
    VALIDATION_SHARE,
    Setup,
)
from studies.rules.factors import Factors, FactorScores, Pairs, factorize
from studies.rules.measure import (
    Metrics,
    Score,
    allowed_triples,
    catalogue_hits,
    leaking_share,
    measure,
    validation_loss,
)

VALIDATION = "tasks.rules.validation-share"

NETWORKS = ((FACTORS, Factors), (CONVOLVED, Convolved))

TUNING = Tuning("loss", {VALIDATION: VALIDATION_SHARE, "evaluate-every": EVALUATE_EVERY}, chooses_round=True)


def compute(selection: Selection, store: Store) -> None:
    """Compute the selected rows."""
    for name in (name for name in SETS if selection.has_set(name)):
        read = partial(_read, selection.data, name)
        bench = Bench(name, read, store, _trial_of, TUNING, lambda _: STACKED, selection)
        bench.run(EXPERIMENTS)
        for one, network in NETWORKS:
            Factorization(name, read, store, tuning=TUNING, selection=selection, network=network).run([one])
        bench.run_baselines(COUNTS, FACTORS.seeds, partial(_counts, bench))
        bench.describe(partial(_sizes, bench))
        if name == curves.SET:
            bench.run_baselines(COMMAND, FACTORS.seeds, partial(_command, selection.data))
            traced = Bench(name, read, store, _trace, stacked=lambda _: STACKED, selection=selection)
            traced.run(curves.EXPERIMENTS)
    _compute_drift(selection, store)
    for homes in filter(lambda number: selection.has_set(demo_homes.set_name(number)), demo_homes.HOMES):
        read = partial(read_all, TASK.name, f"demo:0-{homes}")
        Bench(demo_homes.set_name(homes), read, store, selection=selection).run(demo_homes.experiments())


def _compute_drift(selection: Selection, store: Store) -> None:
    """Compute the drift laboratory, and both methods on homes with two devices of a type."""
    for specialisation in drift.SPECIALISATIONS:
        if selection.has_set(name := drift.drift_set(specialisation)):
            read = partial(drift.read_drift, specialisation)
            drifting = Bench(name, read, store, _ends, stacked=lambda _: STACKED, selection=selection)
            drifting.run(drift.rows_of(specialisation))
            replace(drifting, measure=dissimilarity.of_run).run([drift.MEASURED_GRADIENTS])
    for specialisation in drift.ENDS:
        if selection.has_set(name := drift.busy_set(specialisation)):
            read = partial(drift.read_drift, specialisation, drift.BUSY_HOMES, drift.BUSY_RULES)
            busy = Bench(name, read, store, _ends, stacked=lambda _: STACKED, selection=selection)
            busy.run(drift.BUSY_ROWS)
    if selection.has_set(drift.TWINS):
        twins = Bench(drift.TWINS, drift.read_twins, store, _ends, stacked=lambda _: STACKED, selection=selection)
        twins.run(drift.SAME_TYPE)


def _read(data: Path, setup: Setup) -> AnyDataset:
    """Read the homes with more than two devices."""
    whole = read_homes(data / "ifttt-recrules", setup=setup)
    return replace(whole, units=tuple(home for home in whole.units if len(home.devices) > 2))


def _trial_of(run: FinishedRun) -> Trial:
    """Measure the saved model: validation loss by round while tuning, else all metrics on the test rules."""
    learner = RulesLearner(run.config.task_run(TASK, run.dataset.vocabulary), run.dataset)
    params, statics = split_model(run.folder.load_model()[0], learner)
    score = partial(learner.scores, tensors(params), statics)
    if not run.tunes:
        return Trial(_all_metrics(run.dataset, learner.splits, score))
    curve = run.curve() | {run.config.rounds: {"loss": validation_loss(learner.splits, score)}}
    return Trial(curve={number: metrics for number, metrics in curve.items() if math.isfinite(metrics["loss"])})


def _trace(run: FinishedRun) -> Trial:
    """Return the curve of the test metrics, the last ones and the rise of the loss."""
    curve = {number: {key: found[key] for key in curves.MEASURED} for number, found in run.curve().items()}
    least, last = min(found["loss"] for found in curve.values()), curve[max(curve)]
    return Trial({**last, curves.RISE: last["loss"] / least - 1, "least_loss": least}, curve)


def _ends(run: FinishedRun) -> Trial:
    """Return what `_trace` does without the curve, which no page of the drift laboratory shows."""
    return replace(_trace(run), curve={})


def split_model(saved: Arrays, learner: RulesLearner) -> tuple[Arrays, Arrays]:
    """Return the parameters of a saved model, and its summed statistics."""
    [model], statics = split_statics(saved, {name for name, _ in learner.module.named_parameters()})
    return model, statics


@dataclass
class Factorization(Bench):
    """Bench of central factors of homes and rules, where a round has as many steps as elsewhere."""

    network: Callable[[Pairs, Generator], Factors] = Factors

    def train(self, name: str, flat: Settings, *, central: bool = False) -> Trial:
        """Factorize the training rules of all homes."""
        tunes, seed, rounds = VALIDATION in flat, int(flat["seed"]), int(flat.get("rounds", ROUNDS))
        splits = _splits(self.dataset, seed, float(flat.get(VALIDATION, 0.0)))
        scores = self._scores(splits, float(flat["lr"]), rounds, seed)
        if tunes:
            return Trial(curve={number: {"loss": validation_loss(splits, score)} for number, score in scores})
        *_, (_, score) = scores
        hits = catalogue_hits(splits, score.of_catalogue, _valid(self.dataset, splits))
        return Trial(_all_metrics(self.dataset, splits, score) | hits, config=flat)

    def _scores(
        self, splits: Sequence[SplitHome], rate: float, rounds: int, seed: int
    ) -> Iterator[tuple[int, FactorScores]]:
        """Yield scores by round."""
        catalogue = self.dataset.vocabulary
        reports = factorize(
            splits,
            len(catalogue.entities),
            len(catalogue.relations),
            self.network,
            rate=rate,
            steps=rounds * LOCAL_STEPS,
            report_every=EVALUATE_EVERY * LOCAL_STEPS,
            seed=seed,
        )
        return ((step // LOCAL_STEPS, score) for step, score in reports)


def _command(data: Path, key: str, seed: int) -> Trial:
    """Train as a user's command does, and return what it prints."""
    run = simulate(TASK.name, data=data / "ifttt-recrules", seed=seed)
    return Trial({name: run.metrics[name] for name in ("hr20", "hr20_shown", "mr0")})


def _counts(bench: Bench, key: str, seed: int) -> Trial:
    """Measure a count baseline."""
    splits, catalogue = _splits(bench.dataset, seed), bench.dataset.vocabulary
    score = count_baseline(splits, len(catalogue.entities), len(catalogue.relations), key)
    return Trial(_all_metrics(bench.dataset, splits, score))


def _sizes(bench: Bench) -> Trial:
    """Count homes and rules; those with test rules on seed 0."""
    dataset = bench.dataset
    tested = [split for split in _splits(dataset, 0) if len(split.test.positives)]
    sizes = {
        "homes": len(dataset.units),
        "entities": len(dataset.vocabulary.entities),
        "relations": len(dataset.vocabulary.relations),
        "rules": sum(len(home.rules) for home in dataset.units),
        "tested_homes": len(tested),
        "test_rules": sum(len(split.test.positives) for split in tested),
        "leaking_share": leaking_share(tested),
    }
    return Trial(sizes)


def _all_metrics(dataset: AnyDataset, splits: Sequence[SplitHome], score: Score) -> Metrics:
    return measure(splits, score, _valid(dataset, splits))


def _valid(dataset: AnyDataset, splits: Sequence[SplitHome]) -> Mask:
    catalogue = dataset.vocabulary
    return allowed_triples(splits, len(catalogue.entities), len(catalogue.relations))


def _splits(dataset: AnyDataset, seed: int, validation_share: float = 0.0) -> tuple[SplitHome, ...]:
    options = RulesOptions(negatives=1, validation_share=validation_share)
    return split_homes(dataset.units, len(dataset.vocabulary.relations), options, seed)
