"""Runs of the real thing (`deploy.simulation.simulate`), each remembered in a cache folder so that a killed study goes on."""

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks.memory import Json, Memory
from benchmarks.ratings.authors import DPSGD, Authors, Mechanism
from benchmarks.ratings.experiments import Experiment, Settings
from benchmarks.ratings.lines import lines_of
from benchmarks.ratings.published import rows_of, true_epsilon
from benchmarks.ratings.sets import Setting
from client.tasks.ratings.data.raters import Ratings
from client.tasks.ratings.data.split import SplitRater, split_rater
from common.config.parse import parse
from common.errors import FedloomError
from common.methods.planners import PlannerOptions
from common.tasks.ratings.options import RatingsOptions
from deploy.simulation import simulate
from server.artifacts import RunDirectory
from server.events import Round

ERRORS = ("rmse", "mae", "f1")

DRAWING = "-own-draws"
"""Of keys of the authors' scheme under a planner that draws: each split draws anew, which in older results it did not."""


@dataclass(frozen=True)
class Trial:
    """What one training came to."""

    final: dict[str, float]
    """After the last round, on the test ratings."""
    curve: dict[str, dict[str, float]]
    """Round -> metrics; of held-out training ratings where planners are rewarded for those, else of the test ratings."""
    seconds: float
    rounds: int = 0
    """Rounds that were done; fewer than asked where the budget ended earlier."""
    megabytes: float = 0.0
    spent: float | None = None
    """ε of the most that a client was asked to spend, by the odometer: no guarantee."""
    failure: str = ""
    config: Settings = field(default_factory=dict)


class Bench:
    """One data set, and what is known of it."""

    def __init__(self, setting: Setting, folder: Path, memory: Memory) -> None:
        self.setting, self.memory, self._folder = setting, memory, folder

    @cached_property
    def dataset(self) -> Ratings:
        """Read when first needed."""
        return self.setting.read(self._folder)

    @property
    def true_epsilon(self) -> float:
        """What the authors' accounting really costs a client of the mean number of training ratings."""
        return float(round(true_epsilon(self.item_rows[0])))

    @property
    def item_rows(self) -> tuple[float, float]:
        """Mean and largest number of training ratings, over clients that have any."""
        return rows_of(np.array([len(split.train) for split in self.splits(0)[0]]))

    def trial(self, experiment: Experiment, seed: int) -> Trial | None:
        """One training; None where the cache lacks it and nothing is to be computed."""
        key = f"{self.setting.key}-{experiment.key}-seed{seed}"
        return self._recalled(key, lambda: self._train(key, experiment, seed))

    def lines(self, seed: int, held_out: float) -> dict[str, dict[str, float]]:
        """Metrics of every line on that seed's test ratings; `held_out` of the others are not seen."""
        trial = self._recalled(f"{self.setting.key}-lines-{held_out:g}-seed{seed}", lambda: self._lines(seed, held_out))
        return trial.curve if trial else {}

    def authors(self, rounds: int, seed: int, planner: PlannerOptions, mechanism: Mechanism) -> Trial | None:
        """The authors' own scheme."""
        row = "authors" if (planner, mechanism) == (DPSGD, "gaussian") else f"authors-{planner.name}-{mechanism}"
        row += DRAWING if planner.name == "bgtplanner" else ""
        key = f"{self.setting.key}-{row}-{rounds}-seed{seed}"
        return self._recalled(key, lambda: self._authors(rounds, seed, planner, mechanism))

    def splits(self, seed: int, held_out: float = 0.0) -> tuple[list[SplitRater], RatingsOptions]:
        """Everybody's ratings as that seed splits them."""
        options = RatingsOptions(validation_share=held_out)
        return [split_rater(r, self.dataset.vocabulary, options, seed) for r in self.dataset.units], options

    def _recalled(self, key: str, compute: Callable[[], Trial]) -> Trial | None:
        found = self.memory.recall(key, lambda: asdict(compute()), _gist)
        return None if found is None else Trial(**found)

    def _train(self, key: str, experiment: Experiment, seed: int) -> Trial:
        flat = experiment.config(seed, self.setting.tuned, self.true_epsilon)
        names = self.memory.folder / f"{self.setting.key}-products.json"
        names.write_text(self.dataset.vocabulary.to_json(), "utf-8")
        config = parse({**flat, "run-id": key, "catalogue": str(names)})
        folder = RunDirectory(self.memory.folder, key)
        shutil.rmtree(folder.path, ignore_errors=True)
        started = time.perf_counter()
        try:
            result = simulate(config, self.dataset, self.memory.folder, noise_seed=seed)
        except FedloomError as error:
            return Trial({}, {}, time.perf_counter() - started, failure=str(error), config=flat)
        measured = [event for event in folder.events() if isinstance(event, Round) and "rmse" in event.metrics]
        rounds = [event for event in measured if event.split != "test"]
        curve = {str(event.round): {name: event.metrics[name] for name in ERRORS} for event in rounds}
        shutil.rmtree(folder.path)
        return Trial(
            {name: result.metrics[name] for name in ERRORS},
            curve,
            time.perf_counter() - started,
            result.rounds_done,
            (result.bytes_down + result.bytes_up) / 1e6,
            result.privacy.epsilon_spent_max,
            config=flat,
        )

    def _lines(self, seed: int, held_out: float) -> Trial:
        started = time.perf_counter()
        splits, options = self.splits(seed, held_out)
        measured = lines_of(splits, len(self.dataset.vocabulary.items), options)
        return Trial({}, measured, time.perf_counter() - started)

    def _authors(self, rounds: int, seed: int, planner: PlannerOptions, mechanism: Mechanism) -> Trial:
        started = time.perf_counter()
        splits, _ = self.splits(seed)
        scheme = Authors(splits, len(self.dataset.vocabulary.items), rounds, planner, mechanism)
        curve = scheme.run(seed)
        last = max(curve, key=int)
        return Trial(curve[last], curve, time.perf_counter() - started, int(last))


def _gist(trial: Json) -> str:
    return trial["failure"] or (f"rmse {trial['final']['rmse']:.4f}" if trial["final"] else "lines")
