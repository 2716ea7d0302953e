"""Runs of the real thing (`deploy.simulation.simulate`), each remembered in a cache folder so that a killed study goes on."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks.memory import Json, Memory
from benchmarks.sessions.central import Central
from benchmarks.sessions.experiments import CENTRAL_EPOCHS, TUNING_SEED, VALIDATION_SHARE, Experiment, Settings
from benchmarks.sessions.lines import lines_of
from benchmarks.sessions.sets import Setting
from benchmarks.studies import passing
from client.tasks.sessions.data.split import split_visitor
from client.tasks.sessions.data.visitors import Visits
from common.config.parse import parse
from common.errors import FedloomError
from common.tasks.sessions.metrics import ranks, session_metrics
from common.tasks.sessions.options import SessionsOptions
from deploy.simulation import simulate
from server.events import Round

TOGETHER = 20
"""Clients that train stacked."""


@dataclass(frozen=True)
class Trial:
    """What one training came to."""

    curve: dict[str, dict[str, float]]
    """Round -> metrics; of the validation cases while tuning, else of the test cases."""
    megabytes_a_round: float
    seconds: float
    failure: str = ""
    config: Settings = field(default_factory=dict)

    @property
    def final(self) -> dict[str, float]:
        """Metrics after the last evaluated round."""
        return self.curve[max(self.curve, key=int)]


class Bench:
    """One data set, and what is known of it."""

    def __init__(self, setting: Setting, folder: Path, memory: Memory) -> None:
        self.setting, self.memory = setting, memory
        self._folder = folder

    @cached_property
    def dataset(self) -> Visits:
        """Read when first needed."""
        return self.setting.read(self._folder)

    def tuned(self, experiment: Experiment) -> tuple[Settings, dict[str, float]]:
        """The point with the best HR@20 on the tuning seed's validation cases, and every point's; a lone point is not tried."""
        grid = experiment.grid or self.setting.grid
        found: dict[str, float] = {}
        for point in grid if len(grid) > 1 else ():
            trial = self.trial(experiment, point, TUNING_SEED, validation=True)
            if trial is not None:
                found[label(point)] = -1.0 if trial.failure else trial.final["hr20"]
        best = max(grid, key=lambda point: found.get(label(point), -2.0))
        return best, found

    def trial(self, experiment: Experiment, point: Settings, seed: int, *, validation: bool) -> Trial | None:
        """One training; None where the cache lacks it and nothing is to be computed."""
        what = "tune" if validation else f"seed{seed}"
        key = f"{self.setting.key}-{experiment.key}-{label(point).replace(' ', '').replace(',', '-')}-{what}"
        return self._recalled(key, lambda: self._train(key, experiment, point, seed, validation))

    def central(self, rate: float, seed: int, *, validation: bool) -> Trial | None:
        """SR-GNN on everybody's sessions in one place; its curve is by epoch."""
        what = "tune" if validation else f"seed{seed}"
        return self._recalled(
            f"{self.setting.key}-central-lr{rate:g}-{what}", lambda: self._central(rate, seed, validation)
        )

    def lines(self, seed: int) -> dict[str, dict[str, float]] | None:
        """Metrics of every trivial line on that seed's test cases."""
        trial = self._recalled(f"{self.setting.key}-lines-seed{seed}", lambda: self._lines(seed))
        return trial.curve if trial else None

    def _recalled(self, key: str, compute: Callable[[], Trial]) -> Trial | None:
        found = self.memory.recall(key, lambda: asdict(compute()), _gist)
        return None if found is None else Trial(**found)

    def _train(self, key: str, experiment: Experiment, point: Settings, seed: int, validation: bool) -> Trial:
        setting = self.setting
        share = min(1.0, setting.clients_a_round / len(self.dataset.units))
        flat = experiment.config(
            point,
            seed=seed,
            rounds=setting.rounds,
            evaluate_every=setting.evaluate_every,
            cohort=share,
            cooldown=setting.cooldown,
            validation=validation,
        )
        names = self.memory.folder / f"{setting.key}-items.json"
        names.write_text(self.dataset.vocabulary.to_json(), "utf-8")
        config = parse({**flat, "run-id": key, "catalogue": str(names)})
        started = time.perf_counter()
        with passing(self.memory.folder, key) as folder:
            try:
                result = simulate(config, self.dataset, self.memory.folder, together=TOGETHER)
            except FedloomError as error:
                return Trial({}, 0.0, time.perf_counter() - started, str(error).partition(";")[0], flat)
            rounds = [event for event in folder.events() if isinstance(event, Round) and event.metrics]
        last = -1 if validation else len(rounds)  # the last round is evaluated on the test cases
        curve = {str(event.round): dict(event.metrics) for event in rounds[:last]}
        traffic = (result.bytes_down + result.bytes_up) / setting.rounds / 1e6
        return Trial(curve, traffic, time.perf_counter() - started, config=flat)

    def _central(self, rate: float, seed: int, validation: bool) -> Trial:
        started = time.perf_counter()
        options = SessionsOptions(validation_share=VALIDATION_SHARE if validation else 0.0)
        splits = [split_visitor(visitor, options, seed) for visitor in self.dataset.units]
        central = Central(splits, len(self.dataset.vocabulary.items), options, rate, CENTRAL_EPOCHS, seed)
        return Trial(central.run(validation=validation), 0.0, time.perf_counter() - started)

    def _lines(self, seed: int) -> Trial:
        started, items = time.perf_counter(), len(self.dataset.vocabulary.items)
        splits = [split_visitor(visitor, SessionsOptions(), seed) for visitor in self.dataset.units]
        cases = [(who, case) for who, split in enumerate(splits) for case in split.test]
        targets = np.array([case.target for _, case in cases])
        measured = {}
        for title, line in lines_of(splits, items).items():
            scored = (line(case.prefix, who)[None] for who, case in cases)
            places = np.concatenate([ranks(s, targets[k : k + 1]) for k, s in enumerate(scored)])
            metrics = session_metrics(places, np.zeros(len(places)))
            measured[title] = {key: value for key, value in metrics.items() if key != "loss"}
        return Trial(measured, 0.0, time.perf_counter() - started)


def _gist(trial: Json) -> str:
    return trial["failure"] or f"hr20 {max(m['hr20'] for m in trial['curve'].values()):.3f}"


def label(point: Settings) -> str:
    """A point as text."""
    return ", ".join(f"{key} {value:g}" for key, value in point.items() if isinstance(value, float)) or "as it is"
