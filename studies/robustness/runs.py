"""Runs of the robustness study, through the server and the clients that `fedloom simulate` uses."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from client.data.dataset import AnyDataset
from client.data.read import partition, read_all
from client.tasks.learner import Learner
from client.tasks.registry import CLIENT_TASKS, build_learner
from client.training.participant import choose_cohort
from common.config.parse import parse
from common.errors import FedloomError
from deploy.simulation.clients import open_sessions
from deploy.simulation.grid import InProcessGrid
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.round.round import Round as RoundStep
from server.run import run
from studies.harness.bench import run_folder
from studies.harness.row import Metrics, Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.robustness.attackers import choose_attackers, with_attackers, with_false_data
from studies.robustness.cases import (
    CLIENTS,
    DATA,
    FRESH_DATA,
    FRESH_TEST_SHARE,
    QUALITY,
    SEEDS,
    STORED,
    Case,
    all_cases,
)

DATA_SEED = 0


def compute(selection: Selection, store: Store) -> None:
    """Compute the selected rows; seeds are the outer loop."""
    for seed in range(min(SEEDS, selection.most)):
        for case in all_cases():
            if selection.has_set(case.task) and selection.has(case.key.row, case.attack):
                store.get_or_compute(case.key, seed, partial(measure, case, seed, store.folder), case.key.row)


def measure(case: Case, seed: int, runs: Path) -> Trial:
    """Return the metrics of a run to its end; a run that fails yields a trial without."""
    flat = {**case.settings, "seed": seed, "run-id": "-".join([*case.key, str(seed)]).replace(".", "-")}
    config, nodes = parse(flat), range(1, CLIENTS + 1)
    attackers = choose_attackers(case, nodes, seed)
    sessions, _ = open_sessions(with_false_data(case, partition_demo(case.task), attackers))
    grid = InProcessGrid(with_attackers(case, sessions, attackers), choose_cohort(CLIENTS))
    started = time.perf_counter()
    with run_folder(runs, config.run_id) as folder, timed_aggregation() as seconds:
        try:
            result = run(grid, config, runs)
        except FedloomError as error:
            reason = str(error).partition(";")[0]
            return Trial(seconds=time.perf_counter() - started, failure=reason, config=flat)
        shown = {f"shown_{QUALITY}": result.metrics[QUALITY]}
        metrics = {**measure_quality(case, folder), **shown, **who_was_named(folder, attackers)}
    metrics |= {"seconds": median(seconds), "attackers": float(len(attackers))}
    return Trial(metrics, seconds=time.perf_counter() - started, config=flat)


@cache
def partition_demo(task: str) -> Sequence[AnyDataset]:
    """Return the clients' data."""
    return partition(read_all(task, DATA, DATA_SEED), CLIENTS, unit=CLIENT_TASKS[task].unit)


def measure_quality(case: Case, folder: RunDirectory) -> Metrics:
    """Return metrics of the final model on data of units that no client has."""
    model, _ = folder.load_model()
    metrics, _ = _fresh_learner(case.task, str(case.settings["method"])).evaluate(model, {}, "test")
    return {name: metrics[name] for name in STORED if name in metrics}


@cache
def _fresh_learner(task: str, method: str) -> Learner:
    config = parse({"task": task, "method": method, f"tasks.{task}.test-share": FRESH_TEST_SHARE})
    return build_learner(config, read_all(task, FRESH_DATA, DATA_SEED))


def who_was_named(folder: RunDirectory, attackers: Iterable[int]) -> Metrics:
    """Return the numbers of attackers and honest clients named in a round line, and of steps taken back."""
    rounds = [event for event in folder.events() if isinstance(event, RoundEvent)]
    named = {client for event in rounds for client in event.refused}
    liars = {f"client-{node - 1}" for node in attackers}
    taken_back = sum("taken_back" in event.server for event in rounds)
    return {"named": len(named & liars), "mistaken": len(named - liars), "taken_back": float(taken_back)}


@contextmanager
def timed_aggregation() -> Iterator[list[float]]:
    """Yield the processor seconds of each round's `aggregate_train`: checks, aggregate and server step."""
    aggregate, seconds = RoundStep.aggregate_train, list[float]()

    def timed(*arguments: Any) -> Any:
        started = time.thread_time()
        try:
            return aggregate(*arguments)
        finally:
            seconds.append(time.thread_time() - started)

    with patch.object(RoundStep, "aggregate_train", timed):
        yield seconds
