"""Runs of the real thing (`deploy.simulation.simulate`), each remembered in a cache folder so that a killed study goes on."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from pathlib import Path
from statistics import fmean, stdev

from benchmarks.memory import Memory
from benchmarks.studies import passing
from benchmarks.traffic.experiments import Experiment
from benchmarks.traffic.lines import last_reading, ridge_row
from benchmarks.traffic.sets import Setting
from client.tasks.traffic.data.series import Sensors
from client.tasks.traffic.learner import TrafficLearner
from common.arrays import add
from common.config.parse import parse
from common.config.run import RunConfig
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.task import TASK
from deploy.simulation import simulate

TOGETHER = 20
"""Clients that train stacked; transformers one by one, since a stack of them leaves the processor's cache."""


@dataclass
class Row:
    """One method: every seed's metrics after the last round, on the test windows."""

    key: str
    title: str
    seeds: dict[str, dict[str, float]] = field(default_factory=dict)

    def mean(self, metric: str) -> float:
        """Over the seeds that have it."""
        return fmean(seed[metric] for seed in self.seeds.values() if metric in seed)

    def cell(self, metric: str, digits: int = 4) -> str:
        """Mean over the seeds, with their spread; empty without the metric."""
        values = [seed[metric] for seed in self.seeds.values() if metric in seed]
        if not values:
            return ""
        spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 and stdev(values) > 0 else ""
        return f"{fmean(values):.{digits}f}{spread}"


class Bench:
    """One data set, up to one of its origins, and what is known of it."""

    def __init__(self, setting: Setting, folder: Path, memory: Memory, *, origin: int = 0, uploads: int = 0) -> None:
        self.setting, self._folder, self._memory, self._origin = setting, folder, memory, origin
        self._uploads = uploads or setting.uploads
        self._key = f"{setting.key}-{origin}" if origin else setting.key

    @cached_property
    def dataset(self) -> Sensors:
        """Read when first needed."""
        return self.setting.dataset(self._folder, self._memory.folder, self._origin)

    def row(self, experiment: Experiment, seeds: Sequence[int]) -> Row:
        """The seeds that are known, or can be computed."""
        found = {str(seed): self._trial(experiment, seed) for seed in seeds[: experiment.seeds]}
        return Row(experiment.key, experiment.title, {seed: metrics for seed, metrics in found.items() if metrics})

    def lines(self, kind: str) -> Row:
        """Profile + ridge under the paper's property or the calibrated one, and what holds without any model.

        `joint_mse` is of the line that is half everybody's (`client.tasks.traffic.federated_ridge`).
        """
        found = self._memory.recall(f"{self._key}-lines-{kind}", lambda: self._lines(kind))
        return Row("ridge", "*line:* profile + federated ridge", {"0": found} if found else {})

    def _lines(self, kind: str) -> dict[str, float]:
        options = TrafficOptions.model_validate({"property": kind, **self.setting.task})
        config = RunConfig.model_validate({"method": "fedavg", "task": "traffic", "tasks": {"traffic": options}})
        run = config.task_run(TASK, self.dataset.vocabulary)
        learners = [TrafficLearner(run, replace(self.dataset, units=(series,))) for series in self.dataset.units]
        truths = [learner.baselines("test", {})[0] for learner in learners]
        means = {name: fmean(t[name] for t in truths if name in t) for name in truths[0]}
        sensors = [sensor for learner in learners for sensor in learner.sensors]
        last = {"last_mse": last_reading(sensors, options)}
        if options.property != "difference":
            total = reduce(add, (learner.counts() for learner in learners))
            joint = [learner.baselines("test", learner.without_own(total, learner.counts()))[0] for learner in learners]
            last["joint_mse"] = fmean(told["ridge_mse"] for told in joint if "ridge_mse" in told)
        return {**means, **last, **ridge_row(sensors, options)}

    def _trial(self, experiment: Experiment, seed: int) -> dict[str, float]:
        key = f"{self._key}-{experiment.key}-seed{seed}"
        found = self._memory.recall(key, lambda: self._run(key, experiment, seed), lambda m: f"mse {m['mse']:.4f}")
        return found or {}

    def _run(self, key: str, experiment: Experiment, seed: int) -> dict[str, float]:
        folder, started = self._memory.folder, time.perf_counter()
        names = folder / f"{self.setting.key}-measures.json"
        names.write_text(self.dataset.vocabulary.to_json(), "utf-8")
        flat = experiment.config(seed, self._uploads, self.setting.cohort, self.setting.task)
        config = parse({**flat, "run-id": key, "catalogue": str(names)})
        together = 1 if config.options_of(TASK).network == "transformer" else TOGETHER
        with passing(folder, key):
            result = simulate(config, self.dataset, folder, together=together)
        sent = {"megabytes": (result.bytes_down + result.bytes_up) / 1e6}
        return {**result.metrics, "seconds": time.perf_counter() - started, **sent}
