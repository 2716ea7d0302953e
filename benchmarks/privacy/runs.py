"""Runs of the study of privacy noise, through the server and the clients that `fedloom simulate` uses."""

from functools import partial

from benchmarks.harness.bench import Bench, FinishedRun
from benchmarks.harness.row import Trial
from benchmarks.harness.store import Store
from benchmarks.harness.study import Selection
from benchmarks.privacy.cases import SETTINGS, Setting
from client.data.read import read_all
from common.tasks.registry import TASKS

DATA_SEED = 0


def compute(selection: Selection, store: Store) -> None:
    """Compute the selected rows; a data set's name is that of a task here."""
    for setting in SETTINGS:
        if selection.has_set(setting.task):
            read = partial(read_all, setting.task, setting.data, DATA_SEED)
            bench = Bench(setting.task, read, store, partial(trial_of, setting), selection=selection)
            bench.run(setting.experiments(TASKS[setting.task].defaults))


def trial_of(setting: Setting, run: FinishedRun) -> Trial:
    """Return the metric and that of the floor, on the same held-out data."""
    return Trial({key: run.result.metrics[key] for key in (setting.metric, setting.floor)})
