"""Runs of the study of privacy noise, through the server and the clients that `fedloom simulate` uses."""

from functools import partial

from client.data.read import read_all
from common.tasks.registry import TASKS
from studies.harness.bench import Bench, FinishedRun
from studies.harness.row import Row, Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.privacy.cases import SETTINGS, Setting
from studies.privacy.signal import signal_sets

DATA_SEED = 0


def compute(selection: Selection, store: Store) -> None:
    """Compute the selected rows; a data set's name is that of a task here."""
    for setting in SETTINGS:
        if selection.has_set(setting.task):
            read = partial(read_all, setting.task, setting.data, DATA_SEED)
            bench = Bench(setting.task, read, store, partial(trial_of, setting), selection=selection)
            rows = setting.experiments(TASKS[setting.task].trained)
            for one in rows:
                if selection.has(one.key, one.protocol) and is_outdated(
                    setting, store.results.row(setting.key(one.key))
                ):
                    del store.results.rows[setting.key(one.key)]
            bench.run(rows)
    for runs in signal_sets():
        if selection.has_set(runs.name):
            task = runs.setting.task
            read = partial(read_all, task, runs.data, DATA_SEED)
            bench = Bench(runs.name, read, store, partial(trial_of, runs.setting), selection=selection)
            bench.run(runs.experiments(TASKS[task].trained))


def is_outdated(setting: Setting, row: Row) -> bool:
    """Return True for a row that was stored before its task had validation data; it is run again."""
    return bool(setting.validation and row.trials and setting.validation_key not in row.about.config)


def trial_of(setting: Setting, run: FinishedRun) -> Trial:
    """Return the metrics of model, floor and, with noise, what clients use, on the same test data."""
    metrics = run.result.metrics
    return Trial({key: metrics[key] for key in (setting.metric, setting.floor, setting.used) if key in metrics})
