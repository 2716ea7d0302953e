"""Runs of adaptive and targeted liars on real data; each row is stored when it is measured."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from statistics import fmean

import numpy as np

from client.data.dataset import AnyDataset
from client.data.read import partition
from client.tasks.lists import best_first
from client.tasks.markets.data.reader import read_markets
from client.tasks.ratings.data.reader import read_raters
from client.tasks.registry import CLIENT_TASKS, build_learner
from client.tasks.rules.data.reader import read_homes
from client.tasks.rules.learner import RulesLearner
from client.tasks.rules.lists import ListOptions, shared_abilities, shown
from client.tasks.sessions.data.reader import read_visitors
from client.tasks.sessions.learner import SessionsLearner
from client.tasks.traffic.data.reader import read_series
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import FedloomError
from common.models import parameters_of, split_statics, tensors
from common.tasks.rules.vocabulary import RuleCatalogue
from deploy.simulation.clients import open_sessions
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.run import run
from studies.harness.bench import run_folder
from studies.harness.row import Metrics, Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.lies.adaptive import TARGET, ColludingGrid, backdoor, poison
from studies.lies.effect_cases import (
    HONEST,
    PILOT_SEEDS,
    SEEDS,
    SETTINGS,
    TARGETED,
    UNCHECKED,
    Case,
    all_cases,
    pilot_cases,
)
from studies.sessions.data import keep_most_visited, some_groups

PLACES, GROUPS, RATERS, SENSORS = 500, 200, 200, 20
LENGTH, REPEATS = 20, 3
"""Length of the lists in which a target is looked for; repetitions of runs whose time is compared."""


def _sessions(folder: Path) -> AnyDataset:
    return some_groups(keep_most_visited(read_visitors(folder / "diginetica"), PLACES), GROUPS)


def _some(whole: AnyDataset, most: int) -> AnyDataset:
    chosen = sorted(np.random.default_rng(0).permutation(len(whole.units))[:most].tolist())
    return replace(whole, units=tuple(whole.units[k] for k in chosen))


READERS: dict[str, Callable[[Path], AnyDataset]] = {
    "rules": lambda folder: read_homes(folder / "ifttt-recrules", setup="A"),
    "sessions": _sessions,
    "traffic": lambda folder: _some(read_series(folder / "vicroads-scats-boroondara-2006"), SENSORS),
    "ratings": lambda folder: _some(read_raters(folder / "filmtrust"), RATERS),
    "markets": lambda folder: read_markets(folder / "xmarket-electronics"),
}


@cache
def parts_of(task: str, folder: Path) -> Sequence[AnyDataset]:
    """Return the clients' data."""
    return partition(READERS[task](folder), SETTINGS[task].clients, unit=CLIENT_TASKS[task].unit)


def compute(selection: Selection, store: Store) -> None:
    """Compute the selected rows; seeds are the outer loop."""
    runs = dict.fromkeys(range(min(SEEDS, selection.most)), all_cases) | dict.fromkeys(PILOT_SEEDS, pilot_cases)
    for seed, cases in runs.items():
        for case in cases():
            if selection.has_set(case.key.set) and selection.has(case.key.row, case.method):
                measured = partial(
                    compare if case.attack == UNCHECKED else measure, case, seed, selection.data, store.folder
                )
                store.get_or_compute(case.key, seed, measured, case.key.row)


def compare(case: Case, seed: int, data: Path, runs: Path) -> Trial:
    """Return the run without checks, with the processor time of the run with checks over its own.

    Both runs alternate. The smallest of `REPEATS` times of each counts, since other processes of the machine only add time.
    """
    trial, seconds = measure(case, seed, data, runs), {case: [math.inf], case.honest: [math.inf]}
    for one in (case, case.honest) * REPEATS:
        started = time.process_time()
        measure(one, seed, data, runs)
        seconds[one].append(time.process_time() - started)
    return replace(trial, metrics={**trial.metrics, "time": min(seconds[case.honest]) / min(seconds[case])})


def measure(case: Case, seed: int, data: Path, runs: Path) -> Trial:
    """Return each honest client's quality, and who was named; a run that fails yields a trial without."""
    flat = {**case.settings, "seed": seed, "run-id": f"effect-{case.task}-{seed}"}
    parts, started = parts_of(case.task, data), time.perf_counter()
    if case.task != "traffic":
        names = runs / f"{case.task}-names.json"
        names.write_text(parts[0].vocabulary.to_json(), "utf-8")
        flat |= {"catalogue": str(names)}
    config = parse(flat)
    nodes = range(1, len(parts) + 1)
    liars = sorted(np.random.default_rng([seed, len(parts)]).permutation(nodes)[: case.liars].tolist())
    targets = TARGETED.get(case.task, ())
    lies = case.attack in targets
    sessions, _ = open_sessions(
        [poison(p, case.attack) if lies and k in liars else p for k, p in zip(nodes, parts, strict=True)]
    )
    with run_folder(runs, config.run_id) as folder:
        try:
            result = run(ColludingGrid(sessions, case, liars, config.rounds), config, runs)
        except FedloomError as error:
            return Trial(seconds=time.perf_counter() - started, failure=str(error).partition(";")[0], config=flat)
        metrics = who_was_named(folder, liars)
        if targets and case.attack in (HONEST, *targets):
            metrics["target"] = promoted(
                config, folder, [p for k, p in zip(nodes, parts, strict=True) if k not in liars]
            )
    metric = SETTINGS[case.task].metric
    honest = [f"client-{node - 1}" for node in nodes if node not in liars]
    measured = {name: one.metrics for name, one in result.clients.items() if name in honest}
    clients = {name: {metric: one[metric]} for name, one in measured.items() if metric in one}
    seconds = time.perf_counter() - started
    return Trial(metrics, clients=clients, seconds=seconds, config=case.settings if case == case.honest else {})


def who_was_named(folder: RunDirectory, liars: Sequence[int]) -> Metrics:
    """Return the numbers of liars, of those that a round line names, and of honest clients that one names."""
    rounds = [event for event in folder.events() if isinstance(event, RoundEvent)]
    named = {client for event in rounds for client in (*event.refused, *event.missing)}
    false = {f"client-{node - 1}" for node in liars}
    aside = sum(event.server.get("set_aside", 0.0) for event in rounds)
    found = {"liars": len(false), "named": len(named & false), "mistaken": len(named - false), "aside": aside}
    return {name: float(number) for name, number in found.items()}


def promoted(config: RunConfig, folder: RunDirectory, honest: Sequence[AnyDataset]) -> float:
    """Return the share of honest clients' lists, of 20 items or rules, that have the target.

    Lists are of the test sessions, and of the homes that have both device types.
    """
    found = list[bool]()
    for part in honest:
        learner = build_learner(config, part)
        models, statics = split_statics(folder.load_model()[0], parameters_of(config, part.vocabulary))
        if isinstance(learner, RulesLearner):
            found += _ruled(learner, models[0], statics, part.vocabulary)
        elif isinstance(learner, SessionsLearner):
            scores = (row for rows in learner.scores(models[0], statics, "test") for row in np.atleast_2d(rows))
            found += [bool((best_first(row, row > -np.inf)[:LENGTH] == TARGET).any()) for row in scores]
    return fmean(found)


def _ruled(learner: RulesLearner, model: Arrays, statics: Arrays, catalogue: RuleCatalogue) -> list[bool]:
    """Return for each home with both device types of the backdoor if its list has the rule."""
    trigger, action, relation = backdoor(catalogue)
    found, options = list[bool](), ListOptions(top=LENGTH)
    for home in learner.splits:
        types = np.array([device.entity for device in home.home.devices], np.int64)
        if {trigger, action} <= {*types.tolist()}:
            logits = learner.scores(tensors(model), statics, home)
            rules = shown(logits, home.home, home.train.positives, shared_abilities(catalogue), options)
            ends = types[rules[:, 0]], types[rules[:, 1]]
            found.append(bool(((ends[0] == trigger) & (ends[1] == action) & (rules[:, 2] == relation)).any()))
    return found
