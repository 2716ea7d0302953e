"""Runs of the sessions study: federated methods, central training and baselines on four sets."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from itertools import accumulate
from math import log

import numpy as np

from client.data.dataset import AnyDataset
from client.tasks.sessions.data.reader import read_visitors
from client.tasks.sessions.data.visitors import SplitVisitor, split_visitor
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.task import ranks, session_metrics
from studies.harness.bench import Bench, FinishedRun, Measure
from studies.harness.experiment import TUNING_SEED, label, task_options
from studies.harness.row import Metrics, RowKey, Trial, mean
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.harness.tuning import Tuning
from studies.sessions import clicked_items, denominators, fedga_by_clicks, long_runs, sensitivity
from studies.sessions.baselines import Baseline, baselines_of
from studies.sessions.central import Central
from studies.sessions.data import READERS
from studies.sessions.diversity import jaccard_distance, visited
from studies.sessions.experiments import BASELINES, CENTRAL, CENTRAL_EPOCHS, CLAIMED_SEEDS, TITLES, VALIDATION_SHARE
from studies.sessions.paper_figures import EPOCHS, PUBLISHED, WHOLE
from studies.sessions.sets import SETTINGS, Setting

STACKED = 20
"""Clients that train stacked."""

PAIRS = 20_000
"""Pairs of clients in the mean of the Jaccard distance."""

NO_TEST_SPLIT = 1e-9
"""Share of sessions held out where a set has its own test cases."""

TUNING = Tuning("hr20", task_options("sessions", {"validation-share": VALIDATION_SHARE}), higher_is_better=True)


def compute(selection: Selection, store: Store) -> None:
    """Compute the selected rows."""
    for setting in SETTINGS:
        if selection.has_set(setting.key):
            _compute_set(setting, selection, store)
    if selection.has(WHOLE):
        for name in filter(selection.has_set, PUBLISHED):
            check = partial(_check_model, selection, name)
            store.get_or_compute(RowKey(name, WHOLE, CENTRAL.key), 0, check, CENTRAL.title)


def _compute_set(setting: Setting, selection: Selection, store: Store) -> None:
    bench = _bench(setting, selection, store)
    bench.run_baselines({key: TITLES[key] for key in BASELINES}, CLAIMED_SEEDS, partial(_baseline, bench))
    if selection.has(CENTRAL.key):
        _compute_central(bench)
    bench.run((*setting.experiments(), *setting.sampled(), *setting.equal_bytes()))
    fedga_by_clicks.register(lambda: bench.dataset.units)
    for protocol, rows in setting.special().items():
        replace(bench, measure=SPECIAL[protocol]).run(rows)
    bench.describe(partial(_sizes, bench))


def _bench(setting: Setting, selection: Selection, store: Store) -> Bench:
    read = partial(READERS[setting.key], selection.data)
    return Bench(setting.key, read, store, _trial_of, TUNING, lambda _: STACKED, selection)


def _trial_of(run: FinishedRun) -> Trial:
    """Return the curve, and its last metrics unless a point is tuned.

    `megabytes_up` counts what clients sent from the first round on.
    """
    rounds = run.rounds()
    sent = accumulate(one.bytes_up / 1e6 for one in rounds)
    up = {one.round: megabytes for one, megabytes in zip(rounds, sent, strict=True)}
    curve = {number: {**metrics, "megabytes_up": up[number]} for number, metrics in run.curve().items()}
    return Trial({} if run.tunes else curve[max(curve)], curve)


def _with_spread(run: FinishedRun) -> Trial:
    """Return the last metrics and the spread of server rates."""
    rates = run.rounds()[-1].server
    low, high = rates["rate_p5"], rates["rate_p95"]
    spreads = {sensitivity.SPREAD: log(high / low), sensitivity.WIDTH: high - low}
    return Trial({**run.curve()[run.config.rounds], **spreads})


def _with_server_numbers(names: Iterable[str], run: FinishedRun) -> Trial:
    """Return the last metrics, and the mean of each of these numbers over the rounds that state it."""
    stated = {name: [one.server[name] for one in run.rounds() if name in one.server] for name in names}
    return Trial(
        {**run.curve()[run.config.rounds], **{name: mean(values) for name, values in stated.items() if values}}
    )


def _with_falls(run: FinishedRun) -> Trial:
    """Return the last metrics, and the falls of the curve."""
    curve = run.curve()
    return Trial({**curve[run.config.rounds], **long_runs.falls([metrics["hr20"] for metrics in curve.values()])})


SPECIAL: Mapping[str, Measure] = {
    sensitivity.PROTOCOL: _with_spread,
    denominators.PROTOCOL: partial(_with_server_numbers, denominators.NUMBERS),
    clicked_items.PROTOCOL: partial(_with_server_numbers, clicked_items.NUMBERS),
    long_runs.PROTOCOL: _with_falls,
}
"""Protocol of the first set -> what is read off its runs."""


def _compute_central(bench: Bench) -> None:
    """Train centrally: rate and epoch by HR@20 on the tuning seed's validation cases."""
    key = RowKey(bench.set, "default", CENTRAL.key)
    about = bench.store.results.row(key).about
    if not about.chosen:
        for point in CENTRAL.grid:
            train = partial(_central, bench, float(point["lr"]), CENTRAL_EPOCHS, TUNING_SEED, VALIDATION_SHARE)
            for epoch, metrics in bench.store.tuning_trial(key, label(point), train).curve.items():
                about.grid[f"{label(point)}, {epoch} epochs"] = {"hr20": metrics["hr20"]}
        about.chosen = {"point": max(about.grid, key=lambda name: about.grid[name]["hr20"])}
    rate, epochs = (part.strip(" lrepochs") for part in str(about.chosen["point"]).split(","))
    train = partial(_central, bench, float(rate), int(epochs))
    bench.run_baselines({CENTRAL.key: CENTRAL.title}, CENTRAL.seeds, lambda _, seed: train(seed))


def _central(bench: Bench, rate: float, epochs: int, seed: int, validation_share: float = 0.0) -> Trial:
    splits = _splits(bench.dataset, seed, validation_share)
    central = Central(splits, len(bench.dataset.vocabulary.items), SessionsOptions(), rate, epochs, seed)
    curve = central.run(validation=validation_share > 0)
    return Trial(curve=curve) if validation_share else Trial(curve[epochs])


def _baseline(bench: Bench, key: str, seed: int) -> Trial:
    """Measure a baseline on all test cases."""
    score = _fit_baselines(bench.dataset, seed)[key]
    splits = _splits(bench.dataset, seed)
    cases = [(visitor, case) for visitor, split in enumerate(splits) for case in split.test]
    places = [ranks(score(case.prefix, visitor)[None], np.array([case.target])) for visitor, case in cases]
    metrics = session_metrics(np.concatenate(places), np.zeros(len(places)))
    return Trial({name: value for name, value in metrics.items() if name != "loss"})


@lru_cache(maxsize=1)
def _fit_baselines(dataset: AnyDataset, seed: int) -> dict[str, Baseline]:
    return baselines_of(_splits(dataset, seed), len(dataset.vocabulary.items))


def _sizes(bench: Bench) -> Trial:
    visitors = bench.dataset.units
    sizes: Metrics = {
        "clients": len(visitors),
        "items": len(bench.dataset.vocabulary.items),
        "sessions": sum(len(visitor.sessions) for visitor in visitors),
        "jaccard": jaccard_distance([visited(visitor) for visitor in visitors], PAIRS, np.random.default_rng(0)),
    }
    return Trial(sizes)


def _splits(dataset: AnyDataset, seed: int, validation_share: float = 0.0) -> list[SplitVisitor]:
    options = SessionsOptions(validation_share=validation_share)
    return [split_visitor(visitor, options, seed) for visitor in dataset.units]


def _check_model(selection: Selection, name: str) -> Trial:
    """Train SR-GNN as its authors did on a whole set.

    Width is 100, L2 is 1e-5, and Adam's rate is 1e-3, a tenth of it after three epochs.
    Test cases whose target is in no training session cannot be ranked; `cases` counts the others.
    """
    options = SessionsOptions(hidden=100, test_share=NO_TEST_SPLIT)
    whole = read_visitors(selection.data / name)
    splits = [split_visitor(visitor, options, 0) for visitor in whole.units]
    curve = Central(splits, len(whole.vocabulary.items), options, 1e-3, EPOCHS, 0).run(validation=False)
    examples = sum(len(session) - 1 for split in splits for session in split.train)
    cases = sum(len(split.test) for split in splits)
    return Trial({**curve[EPOCHS], "examples": examples, "cases": cases}, curve)
