"""Runs of the traffic study: federated methods, baselines, cold-start sensors and broken sensors."""

from dataclasses import replace
from functools import partial
from statistics import fmean

from client.tasks.traffic.learner import TrafficLearner
from common.config.run import RunConfig
from common.errors import ConfigError
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.task import TASK
from studies.harness.bench import Bench
from studies.harness.row import NO_SEED, RowKey, Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.traffic import templates
from studies.traffic.baselines import last_reading, ridge_row
from studies.traffic.cold_start import cold_start
from studies.traffic.data import read
from studies.traffic.experiments import COLD_START_DAYS, FAULTS, KINDS
from studies.traffic.faults import faults
from studies.traffic.sets import FHWA, SETTINGS, SUMO, TEN, Setting

STACKED = 20
"""Number of clients that train stacked.

Transformers train one by one, since a stack of them does not fit the processor's cache.
"""


def compute(selection: Selection, store: Store) -> None:
    """Compute the selected rows; a set that cannot be recorded on this machine is left out."""
    for setting in SETTINGS:
        if selection.has_set(setting.key):
            try:
                _compute_set(setting, selection, store)
            except ConfigError as error:
                print(f"{setting.key} is left out: {error}", flush=True)


def _compute_set(setting: Setting, selection: Selection, store: Store) -> None:
    benches = [
        Bench(
            setting.key,
            partial(read, setting, selection.data, store.folder, origin),
            store,
            stacked=_stack_size,
            selection=selection,
        )
        for origin in range(setting.origins)
    ]
    for origin, bench in enumerate(benches):
        bench.run(setting.experiments(origin))
        every = origin == 0 or setting is FHWA
        kinds = ["difference"] if setting is SUMO else [*KINDS] if every else ["calibrated"]
        for kind in kinds:
            key = RowKey(setting.key, f"origin-{origin}", f"baselines-{kind}")
            if selection.has(key.row):
                compute_kind = partial(_baselines, bench, setting, kind)
                store.get_or_compute(key, NO_SEED, compute_kind, f"baselines under the {kind} property")
        if setting not in (SUMO, FHWA) and selection.has("baselines-repaired"):
            key = RowKey(setting.key, f"origin-{origin}", "baselines-repaired")
            repaired = partial(_baselines, bench, setting, "calibrated", "property")
            store.get_or_compute(key, NO_SEED, repaired, "baselines on repaired histories")
    if setting.key in templates.ROWS:
        days = templates.DAYS if setting is TEN else 0
        recent = partial(read, replace(setting, days=days), selection.data, store.folder)
        Bench(setting.key, recent, store, selection=selection).run(templates.ROWS[setting.key])
    if setting not in (SUMO, FHWA):
        _compute_further(setting, benches[0], selection, store)


def _compute_further(setting: Setting, bench: Bench, selection: Selection, store: Store) -> None:
    """Compute rows of the first origin alone: sensors of a few days, broken sensors."""
    if selection.has("cold-start"):
        for kind, title in KINDS.items():
            for days in COLD_START_DAYS:
                key = RowKey(setting.key, "cold-start", f"{kind}-{days}")
                pooled = partial(cold_start, bench, kind, days)
                store.get_or_compute(key, NO_SEED, pooled, f"{title}, {days} days")
    if selection.has("faults"):
        stored = store.results.rows_of(setting.key, "faults")
        for name, metrics in ({} if stored.keys() >= FAULTS.keys() else faults(bench, setting)).items():
            store.get_or_compute(RowKey(setting.key, "faults", name), NO_SEED, partial(Trial, metrics), FAULTS[name])


def _stack_size(config: RunConfig) -> int:
    return 1 if config.options_of(TASK).network == "transformer" else STACKED


def _baselines(bench: Bench, setting: Setting, kind: str, repair: str = "none") -> Trial:
    """Measure what holds without a trained model, under one kind of property and of repair."""
    dataset = bench.dataset
    options = TrafficOptions.model_validate({"property": kind, "repair": repair, **setting.task})
    config = RunConfig.model_validate({"method": "fedavg", "task": "traffic", "tasks": {"traffic": options}})
    run = config.task_run(TASK, dataset.vocabulary)
    learners = [TrafficLearner(run, replace(dataset, units=(series,))) for series in dataset.units]
    local = [learner.baselines("test", {})[0] for learner in learners]
    metrics = {name: fmean(found[name] for found in local if name in found) for name in local[0]}
    sensors = [sensor for learner in learners for sensor in learner.sensors]
    metrics["last_mse"] = last_reading(sensors, options)
    return Trial({**metrics, **ridge_row(sensors, options)})
