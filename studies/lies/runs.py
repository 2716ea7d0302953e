"""Runs of the study of lies, through the server and the clients that `fedloom simulate` uses."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

from client.data.dataset import AnyDataset
from client.data.read import partition, read_all
from client.tasks.registry import CLIENT_TASKS
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import FedloomError
from common.wire.messages import LOCAL
from deploy.simulation.clients import open_sessions
from deploy.simulation.grid import InProcessGrid
from server.exchange import grid as round_limits
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.record.result import Result
from server.run import run
from studies.harness.bench import run_folder
from studies.harness.row import Metrics, Trial, mean
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.lies import effect_runs
from studies.lies.cases import CLIENTS, GRACE_SECONDS, HONEST, HONEST_SEEDS, LIAR, SETTINGS, Case, all_cases
from studies.lies.liars import LyingGrid, lies

DATA_SEED = 0
NAMES = [f"client-{node - 1}" for node in range(1, CLIENTS + 1)]
MARKS = "\x1b", "\x07", "\\u001b", "\\u0007", "owned\\"
"""Traces of terminal escapes in a file."""


def compute(selection: Selection, store: Store) -> None:
    """Compute the selected rows; seeds are the outer loop."""
    for seed in range(min(HONEST_SEEDS, selection.most)):
        for case in (case for case in all_cases() if seed < case.seeds):
            if selection.has_set(case.task) and selection.has(case.key.row, case.method):
                store.get_or_compute(case.key, seed, partial(measure, case, seed, store.folder), case.key.row)
    effect_runs.compute(selection, store)


def measure(case: Case, seed: int, runs: Path) -> Trial:
    """Return the metrics of a run to its end; a run that fails yields a trial without."""
    flat = {**case.settings, "seed": seed, "run-id": f"lie-{case.task}-{case.method}-{seed}"}
    config, started = parse(flat), time.perf_counter()
    with run_folder(runs, config.run_id) as folder, short_wait():
        try:
            result = run(open_grid(case, config), config, runs)
        except FedloomError as error:
            return Trial(seconds=time.perf_counter() - started, failure=str(error), config=flat)
        metrics = {"quality": quality(case, result), "rounds": float(result.rounds_done), **who_was_named(folder)}
        metrics["stained"] = float(count_stained(folder))
    seconds = time.perf_counter() - started
    return Trial(metrics, seconds=seconds, config=flat if case.lie == HONEST else {})


@contextmanager
def short_wait() -> Iterator[None]:
    """Wait for silent clients for a short time."""
    with patch.object(round_limits, "GRACE_SECONDS", GRACE_SECONDS):
        yield


def open_grid(case: Case, config: RunConfig) -> InProcessGrid:
    """Return the federation with the liar, or without it."""
    sessions, _ = open_sessions(partition_demo(case.task), config.seed)
    if case.lie == HONEST:
        return InProcessGrid({node: session for node, session in sessions.items() if node != LIAR}, 1)
    kind, lie = lies(SETTINGS[case.task].metric, config.method_options.steps(LOCAL))[case.lie]
    return LyingGrid(sessions, LIAR, kind, lie)


@cache
def partition_demo(task: str) -> Sequence[AnyDataset]:
    """Return the clients' data."""
    return partition(read_all(task, SETTINGS[task].data, DATA_SEED), CLIENTS, unit=CLIENT_TASKS[task].unit)


def quality(case: Case, result: Result) -> float:
    """Return the mean metric of the honest clients on their held-out data."""
    metric = SETTINGS[case.task].metric
    clients = [result.clients[name].metrics for name in NAMES[:-1]]
    return mean(metrics[metric] for metrics in clients if metric in metrics)


def who_was_named(folder: RunDirectory) -> Metrics:
    """Return whether a round line names the liar, and the number of honest clients that one names."""
    rounds = [event for event in folder.events() if isinstance(event, RoundEvent)]
    named = {client for event in rounds for client in (*event.refused, *event.missing)}
    liar = {NAMES[-1], f"node-{LIAR}"}
    return {"named": float(bool(named & liar)), "mistaken": float(len(named - liar))}


def count_stained(folder: RunDirectory) -> int:
    """Return the number of the run's files with a terminal escape in them."""
    files = [path for path in folder.path.rglob("*") if path.suffix in (".json", ".jsonl", ".csv", ".txt", ".html")]
    return sum(any(mark in path.read_text("utf-8") for mark in MARKS) for path in files)
