"""Runs of the ratings study: default and paper model, planners, noise, baselines, authors' scheme."""

import math
from functools import partial

import numpy as np

from client.tasks.ratings.data.raters import SplitRater, split_rater
from client.tasks.ratings.data.reader import read_raters
from common.methods.planners import PLANNERS
from common.tasks.ratings.options import RatingsOptions
from studies.harness.bench import Bench, FinishedRun
from studies.harness.row import Metrics, Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.ratings.authors import Authors, Mechanism
from studies.ratings.baselines import baselines_of
from studies.ratings.experiments import AUTHORS, AUTHORS_ROUNDS, BASELINES, REWARD_SHARE, baseline_protocol, held_out
from studies.ratings.paper_figures import rows_of, true_epsilon
from studies.ratings.sets import SETTINGS, Setting

ERRORS = ("rmse", "mae", "f1")

CURVE_POINTS = 20
"""Largest number of rounds of a stored curve."""

MECHANISMS: dict[str, Mechanism] = {"gaussian": "gaussian", "laplace": "laplace"}


def compute(selection: Selection, store: Store) -> None:
    """Compute the selected rows; a row is selected by `protocol/key` or by its key."""
    for setting in SETTINGS:
        if selection.has_set(setting.key):
            _compute_set(setting, selection, store)


def _compute_set(setting: Setting, selection: Selection, store: Store) -> None:
    source = partial(read_raters, selection.data / setting.folder)
    bench = Bench(setting.key, source, store, trial_of, selection=selection)
    experiments = setting.experiments(lambda: float(round(true_epsilon(_item_rows(bench)[0]))))
    bench.run(experiments)
    titles = {key: f"*baseline:* {title}" for key, title in BASELINES.items()}
    for share in (0.0, REWARD_SHARE):
        most = max(one.seeds for one in experiments if held_out(one) == share)
        bench.run_baselines(titles, most, partial(_baseline, bench, share), baseline_protocol(share))
    bench.describe(partial(_sizes, bench), "all")
    for key, one in AUTHORS.items():
        bench.run_baselines({key: one.title}, one.seeds, partial(_authors, bench), "authors")


def trial_of(run: FinishedRun) -> Trial:
    """Return test errors, completed rounds and spent ε.

    If planners are rewarded on held-out ratings, the curve is RMSE on these, of at most `CURVE_POINTS` rounds. Of planners that
    follow rewards, also the share of the budget that was spent, and the RMSE of the delivered model.
    """
    metrics: Metrics = {name: run.result.metrics[name] for name in ERRORS}
    metrics["rounds"] = run.result.rounds_done
    if (spent := run.result.privacy.epsilon_spent_max) is not None:
        metrics["epsilon_spent"] = spent
    stride = math.ceil(run.config.rounds / CURVE_POINTS)
    curve = {
        number: {"rmse": found["rmse"]}
        for number, found in run.curve().items()
        if "rmse" in found and not number % stride
    }
    if run.config.planner.by_rewards:
        best = run.result.best
        metrics["delivered_rmse"] = best.test["rmse"] if best and best.test else metrics["rmse"]
        for event in run.rounds():
            if event.round in curve and "left" in event.server:
                curve[event.round]["spent"] = 1 - event.server["left"]
    return Trial(metrics, curve)


def splits_of(bench: Bench, seed: int, share: float = 0.0) -> tuple[list[SplitRater], RatingsOptions]:
    """Return the ratings of all users, split by the seed; a share of the training ratings is held out."""
    options = RatingsOptions(validation_share=share)
    return [split_rater(r, bench.dataset.vocabulary, options, seed) for r in bench.dataset.units], options


def _item_rows(bench: Bench) -> tuple[float, float]:
    """Return the mean and the largest number of training ratings, over clients that have any."""
    return rows_of(np.array([len(split.train) for split in splits_of(bench, 0)[0]]))


def _baseline(bench: Bench, share: float, key: str, seed: int) -> Trial:
    splits, options = splits_of(bench, seed, share)
    return Trial(baselines_of(splits, len(bench.dataset.vocabulary.items), options)[key])


def _sizes(bench: Bench) -> Trial:
    counts = np.array([len(rater.items) for rater in bench.dataset.units])
    mean_rows, max_rows = _item_rows(bench)
    sizes: Metrics = {
        "clients": len(counts),
        "items": len(bench.dataset.vocabulary.items),
        "ratings": int(counts.sum()),
        "empty": int((counts == 0).sum()),
        "mean_rows": mean_rows,
        "max_rows": max_rows,
    }
    return Trial(sizes)


def _authors(bench: Bench, key: str, seed: int) -> Trial:
    """Run the authors' own scheme; its curve is on test ratings."""
    planner, _, mechanism = key.partition("-")
    splits, _ = splits_of(bench, seed)
    items = len(bench.dataset.vocabulary.items)
    curve = Authors(splits, items, AUTHORS_ROUNDS, PLANNERS[planner].options(), MECHANISMS[mechanism]).run(seed)
    last = max(curve)
    rmse = {number: {"rmse": metrics["rmse"]} for number, metrics in curve.items()}
    return Trial({**curve[last], "rounds": last}, rmse)
