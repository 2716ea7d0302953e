"""Bench: runs experiments on one data set, through the same ServerApp and ClientApp that users run."""

import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from client.data.dataset import AnyDataset
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import FedloomError
from deploy.simulation.grid import simulate
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.record.result import Result
from studies.harness.experiment import Experiment, Settings, label
from studies.harness.row import NO_SEED, Metrics, RowKey, Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.harness.tuning import Tuning


@dataclass(frozen=True)
class FinishedRun:
    """A run that reached its end.

    Args:
        config: Its configuration.
        folder: Its folder, with events and model.
        result: Its result.
        dataset: Data of all clients.
    """

    config: RunConfig
    folder: RunDirectory
    result: Result
    dataset: AnyDataset

    @property
    def tunes(self) -> bool:
        """True if rounds are measured on validation data."""
        return self.config.task_options.validation_share > 0

    def curve(self) -> dict[int, Metrics]:
        """Return round -> metrics, all measured on the same split: validation if there is one."""
        return {one.round: dict(one.metrics) for one in self.rounds() if one.metrics and one.split != "test"}

    def rounds(self) -> list[RoundEvent]:
        """Return the events of all rounds."""
        return [event for event in self.folder.events() if isinstance(event, RoundEvent)]


Measure = Callable[[FinishedRun], Trial]
"""Metrics, curve and clients of a finished run; the bench adds time, traffic and configuration."""


def final_metrics(run: FinishedRun) -> Trial:
    """Return metrics after the last round; the curve while tuning."""
    return Trial(dict(run.result.metrics), run.curve() if run.tunes else {})


@dataclass
class Bench:
    """Runs of one study on one data set.

    Args:
        set: Short name of the data set.
        read: Reads the data, when they are first needed.
        store: Trials computed before.
        measure: Reads a trial off a finished run.
        tuning: How points are chosen; None if no grid has two.
        stacked: Number of clients that train stacked under a configuration; 0 lets the simulation choose.
        selection: Rows and seeds to compute.
    """

    set: str
    read: Callable[[], AnyDataset]
    store: Store
    measure: Measure = final_metrics
    tuning: Tuning | None = None
    stacked: Callable[[RunConfig], int] = lambda _: 0
    selection: Selection = field(default_factory=Selection)

    @cached_property
    def dataset(self) -> AnyDataset:
        """Data of all clients."""
        return self.read()

    @cached_property
    def vocabulary(self) -> Path:
        """File that holds the vocabulary of the data."""
        path = self.store.folder / f"{self.set}-vocabulary.json"
        path.write_text(self.dataset.vocabulary.to_json(), "utf-8")
        return path

    def run(self, experiments: Iterable[Experiment]) -> None:
        """Tune and train the selected experiments.

        Seeds are the outer loop: an interrupted study lacks seeds, not rows.
        """
        chosen = [(one, self.choose(one)) for one in experiments if self.selection.has(one.key, one.protocol)]
        for seed in range(self.selection.most):
            for experiment, point in chosen:
                if point is not None and seed < experiment.seeds:
                    self.trial(experiment, point, seed)

    def run_baselines(
        self, titles: Mapping[str, str], seeds: int, compute: Callable[[str, int], Trial], protocol: str = "default"
    ) -> None:
        """Compute the selected ones of rows that are no runs: key -> title; `compute` takes key and seed."""
        for seed in range(min(seeds, self.selection.most)):
            for key in (key for key in titles if self.selection.has(key, protocol)):
                row = RowKey(self.set, protocol, key)
                self.store.get_or_compute(row, seed, partial(compute, key, seed), titles[key])

    def describe(self, compute: Callable[[], Trial], protocol: str = "default") -> None:
        """Compute the sizes of the data set."""
        self.store.get_or_compute(RowKey(self.set, protocol, "data"), NO_SEED, compute, "data set")

    def trial(self, experiment: Experiment, point: Settings, seed: int) -> Trial:
        """Return one training at a point."""
        key = RowKey(self.set, experiment.protocol, experiment.key)
        flat = {**experiment.settings, **point, "seed": seed}
        train = partial(self.train, f"{'-'.join(key)}-{seed}", flat, central=experiment.central)
        return self.store.get_or_compute(key, seed, train, experiment.title)

    def choose(self, experiment: Experiment) -> Settings | None:
        """Return the experiment's point, tuned if its grid has several; None if training fails at all."""
        if self.tuning is None or len(experiment.grid) == 1:
            return experiment.grid[0]
        key = RowKey(self.set, experiment.protocol, experiment.key)
        tuned = RowKey(self.set, self.tuning.protocol or experiment.protocol, experiment.tuned_as or experiment.key)
        about = self.store.results.row(tuned).about
        if not about.chosen:
            self._tune(experiment, self.tuning, tuned)
        if not about.chosen:
            return None
        self.store.results.row(key).about.chosen = dict(about.chosen)
        point = next(point for point in experiment.grid if label(point) == about.chosen["point"])
        stop = about.chosen.get("round")
        return {**point, "rounds": stop, "evaluate-every": stop} if stop else point

    def _tune(self, experiment: Experiment, tuning: Tuning, key: RowKey) -> None:
        about = self.store.results.row(key).about
        for point in experiment.grid:
            flat = {**experiment.settings, **point, **tuning.settings, "seed": tuning.seed}
            train = partial(self.train, f"{'-'.join(key)}-{label(point)}-tune", flat, central=experiment.central)
            about.grid[label(point)] = tuning.best_of(self.store.tuning_trial(key, label(point), train).curve)
        trained = {name: metrics for name, metrics in about.grid.items() if metrics}
        if trained:
            best = min(trained, key=lambda name: tuning.loss(trained[name]))
            stop = {"round": int(trained[best]["round"])} if tuning.chooses_round else {}
            about.chosen = {"point": best, **stop}

    def train(self, name: str, flat: Settings, *, central: bool = False) -> Trial:
        """Run a configuration to its end; a run that fails yields a trial without metrics.

        Args:
            name: Unique name of the run.
            flat: Configuration, without vocabulary and run id.
            central: True if one client holds all data.
        """
        run_id = re.sub(r"[^\w.-]+", "-", name)
        config = parse({**flat, "run-id": run_id, "catalogue": str(self.vocabulary)})
        started = time.perf_counter()
        with run_folder(self.store.folder, run_id) as folder:
            try:
                result = self._simulate(config, central)
            except FedloomError as error:
                reason = str(error).partition(";")[0]
                return Trial(seconds=time.perf_counter() - started, failure=reason, config=flat)
            seconds = time.perf_counter() - started
            trial = self.measure(FinishedRun(config, folder, result, self.dataset))
        traffic = (result.bytes_down + result.bytes_up) / 1e6
        return replace(trial, seconds=seconds, megabytes=traffic, config=flat)

    def _simulate(self, config: RunConfig, central: bool) -> Result:
        return simulate(
            config,
            self.dataset,
            self.store.folder,
            clients=int(central),
            together=self.stacked(config),
            noise_seed=config.seed,
        )


@contextmanager
def run_folder(root: Path, run: str) -> Iterator[RunDirectory]:
    """Yield a run's folder, empty before the block and removed after it."""
    folder = RunDirectory(root, run)
    shutil.rmtree(folder.path, ignore_errors=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder.path, ignore_errors=True)
