"""Runs of adaptive and targeted liars on real data; each row is stored when it is measured."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from statistics import fmean

import numpy as np

from client.data.dataset import AnyDataset
from client.data.read import partition
from client.tasks.markets.data.reader import read_markets
from client.tasks.ratings.data.reader import read_raters
from client.tasks.registry import CLIENT_TASKS, build_learner
from client.tasks.rules.data.reader import read_homes
from client.tasks.sessions.data.reader import read_visitors
from client.tasks.sessions.data.visitors import Case as Click
from client.tasks.traffic.data.reader import read_series
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import FedloomError
from common.models import parameters_of, split_statics
from deploy.simulation.clients import open_sessions
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.run import run
from studies.harness.bench import run_folder
from studies.harness.row import Metrics, Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.lies.adaptive import TARGET, ColludingGrid, poison
from studies.lies.effect_cases import HONEST, PROMOTION, SEEDS, SETTINGS, Case, all_cases
from studies.sessions.data import keep_most_visited, some_groups

PLACES, GROUPS, RATERS, SENSORS = 500, 200, 200, 20


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
    for seed in range(min(SEEDS, selection.most)):
        for case in all_cases():
            if selection.has_set(case.key.set) and selection.has(case.key.row, case.method):
                measured = partial(measure, case, seed, selection.data, store.folder)
                store.get_or_compute(case.key, seed, measured, case.key.row)


def measure(case: Case, seed: int, data: Path, runs: Path) -> Trial:
    """Return each client's quality of a run, and who was named; a run that fails yields a trial without."""
    flat = {**case.settings, "seed": seed, "run-id": f"effect-{case.task}-{seed}"}
    parts, started = parts_of(case.task, data), time.perf_counter()
    if case.task != "traffic":
        names = runs / f"{case.task}-names.json"
        names.write_text(parts[0].vocabulary.to_json(), "utf-8")
        flat |= {"catalogue": str(names)}
    config = parse(flat)
    nodes = range(1, len(parts) + 1)
    liars = sorted(np.random.default_rng([seed, len(parts)]).permutation(nodes)[: case.liars].tolist())
    lies = case.attack == PROMOTION
    sessions, _ = open_sessions([poison(p) if lies and k in liars else p for k, p in zip(nodes, parts, strict=True)])
    with run_folder(runs, config.run_id) as folder:
        try:
            result = run(ColludingGrid(sessions, case, liars, config.rounds), config, runs)
        except FedloomError as error:
            return Trial(seconds=time.perf_counter() - started, failure=str(error).partition(";")[0], config=flat)
        metrics = who_was_named(folder, liars)
        if case.task == "sessions" and case.attack in (HONEST, PROMOTION):
            metrics["target"] = promoted(config, folder, parts, liars)
    metric = SETTINGS[case.task].metric
    clients = {name: {metric: one.metrics[metric]} for name, one in result.clients.items() if metric in one.metrics}
    seconds = time.perf_counter() - started
    return Trial(metrics, clients=clients, seconds=seconds, config=case.settings if case.attack == HONEST else {})


def who_was_named(folder: RunDirectory, liars: Sequence[int]) -> Metrics:
    """Return the numbers of liars, of those that a round line names, and of honest clients that one names."""
    rounds = [event for event in folder.events() if isinstance(event, RoundEvent)]
    named = {client for event in rounds for client in (*event.refused, *event.missing)}
    false = {f"client-{node - 1}" for node in liars}
    aside = sum(event.server.get("set_aside", 0.0) for event in rounds)
    found = {"liars": len(false), "named": len(named & false), "mistaken": len(named - false), "aside": aside}
    return {name: float(number) for name, number in found.items()}


def promoted(config: RunConfig, folder: RunDirectory, parts: Sequence[AnyDataset], liars: Sequence[int]) -> float:
    """Return the share of honest clients' test lists, of 20 items, that have the target."""
    honest = [part for k, part in enumerate(parts, start=1) if k not in liars]
    asked = [
        replace(part, units=tuple(replace(u, test=tuple(Click(c.prefix, TARGET) for c in u.test)) for u in part.units))
        for part in honest
    ]
    found = []
    for part in asked:
        learner = build_learner(config, part)
        models, statics = split_statics(folder.load_model()[0], parameters_of(config, part.vocabulary))
        metrics, _ = learner.evaluate(models[0], statics, "test")
        found.append(metrics["hr20"])
    return fmean(found)
