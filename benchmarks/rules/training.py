"""Runs of the real thing (`deploy.simulation.simulate`), each remembered in a cache folder so that a killed run goes on."""

import json
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.rules.experiments import ROUNDS, TUNING_SEED, Experiment, Point
from benchmarks.rules.measure import Metrics, Score, catalogue_of, measure, validation_loss
from client.data.rules.homes import Dataset, larger_than
from client.data.rules.ifttt import Setup
from client.data.rules.reader import read_homes
from client.tasks.rules import RulesLearner
from common.arrays import Arrays
from common.config import RunConfig, Scalar, parse
from common.errors import FedloomError
from common.models import tensors
from common.tasks.rules_offset import COUNTS
from deploy.simulation import simulate
from server.artifacts import RunDirectory
from server.events import Round

TOGETHER = 32
"""Clients that train stacked: small cohorts of like size waste little on padding."""


@dataclass(frozen=True)
class Trial:
    """What one training came to."""

    curve: dict[str, float]
    """Round -> validation loss; empty without a validation split."""
    metrics: Metrics
    """On the test rules; empty while tuning."""
    seconds: float
    failure: str = ""
    config: dict[str, Scalar] = field(default_factory=dict)


class NotYetComputed(Exception):
    """A result is not in the cache, and nothing is to be computed."""


@dataclass(frozen=True)
class Choice:
    """The point and the stopping round with the least validation loss."""

    point: int
    round: int
    loss: float


class Bench:
    """One setup of the data with its cache.

    Args:
        folder: The data set in the RecRules form.
        setup: A or B.
        cache: Where results are remembered.
        compute: Whether to compute what the cache lacks.
    """

    def __init__(self, folder: Path, setup: Setup, cache: Path, *, compute: bool = True) -> None:
        cache.mkdir(parents=True, exist_ok=True)
        whole = read_homes(folder, setup=setup)
        self.dataset = Dataset(larger_than(whole.homes, 2), whole.catalogue)
        self.setup, self._cache, self._compute = setup, cache, compute
        self._catalogue = cache / f"catalogue-{setup}.json"
        self._catalogue.write_text(whole.catalogue.to_json(), "utf-8")

    def learner(self, config: RunConfig) -> RulesLearner:
        """All homes as one client."""
        return RulesLearner(config, self.dataset.catalogue, self.dataset.homes)

    def tune(self, experiment: Experiment) -> Choice:
        """Try every point of the grid on the tuning seed.

        Raises:
            FedloomError: No point trains.
        """
        curves = [self.tuning_trial(experiment, point).curve for point in experiment.grid]
        found = [(loss, k, int(number)) for k, curve in enumerate(curves) for number, loss in curve.items()]
        if not found:
            raise FedloomError(f"{experiment.key}: every point of the grid diverges")
        loss, point, number = min(found)
        return Choice(point, number, loss)

    def tuning_trial(self, experiment: Experiment, point: Point) -> Trial:
        """One point on the tuning seed; a run that did not reach its end has no curve."""
        flat = experiment.config(point, seed=TUNING_SEED, rounds=ROUNDS, validation=True)
        return self._remembered(experiment, f"{point.label}-tune", flat, self._tuning_result)

    def trial(self, experiment: Experiment, choice: Choice, seed: int) -> Trial:
        """Train on everything but the test rules, for the chosen number of rounds."""
        point = experiment.grid[choice.point]
        flat = experiment.config(point, seed=seed, rounds=choice.round, validation=False)
        return self._remembered(experiment, f"{point.label}-{choice.round}-seed{seed}", flat, self._test_result)

    def remembered(self, key: str, compute: Callable[[], Trial]) -> Trial:
        """A result from the cache, or computed and put there.

        Raises:
            NotYetComputed: It is not there and must not be computed.
        """
        path = self._cache / f"{self.setup}-{key}.json"
        if path.exists():
            return Trial(**json.loads(path.read_text("utf-8")))
        if not self._compute:
            raise NotYetComputed(key)
        trial = compute()
        aside = path.with_suffix(".part")
        aside.write_text(json.dumps(asdict(trial)), "utf-8")
        aside.replace(path)
        print(f"{self.setup} {key}: {trial.seconds:.0f} s {_gist(trial)}", flush=True)
        return trial

    def _remembered(
        self,
        experiment: Experiment,
        what: str,
        flat: dict[str, Scalar],
        result: Callable[[RunConfig, RunDirectory], Trial],
    ) -> Trial:
        key = f"{experiment.key}-{what}".replace(", ", "-").replace(" ", "")
        return self.remembered(key, partial(self._train, experiment, f"{self.setup}-{key}", flat, result))

    def _train(
        self,
        experiment: Experiment,
        run_id: str,
        flat: dict[str, Scalar],
        result: Callable[[RunConfig, RunDirectory], Trial],
    ) -> Trial:
        config = parse({**flat, "run-id": run_id, "catalogue": str(self._catalogue)})
        folder = RunDirectory(self._cache, run_id)
        shutil.rmtree(folder.path, ignore_errors=True)
        started = time.perf_counter()
        try:
            simulate(config, self.dataset, self._cache, clients=int(experiment.central), together=TOGETHER)
        except FedloomError as error:
            return Trial({}, {}, time.perf_counter() - started, str(error).partition(";")[0], flat)
        seconds = time.perf_counter() - started
        trial = result(config, folder)
        shutil.rmtree(folder.path)
        return Trial(trial.curve, trial.metrics, seconds, config=flat)

    def _tuning_result(self, config: RunConfig, folder: RunDirectory) -> Trial:
        rounds = [event for event in folder.events() if isinstance(event, Round) and event.metrics]
        curve = {str(e.round): e.metrics["loss"] for e in rounds if e.round < config.rounds}
        learner = self.learner(config)
        curve[str(config.rounds)] = validation_loss(learner.splits, _scorer(learner, folder.load_model()[0]))
        return Trial({number: loss for number, loss in curve.items() if math.isfinite(loss)}, {}, 0)

    def _test_result(self, config: RunConfig, folder: RunDirectory) -> Trial:
        learner, catalogue = self.learner(config), self.dataset.catalogue
        valid = catalogue_of(learner.splits, len(catalogue.entities), len(catalogue.relations))
        return Trial({}, measure(learner.splits, _scorer(learner, folder.load_model()[0]), valid), 0)


def _scorer(learner: RulesLearner, saved: Arrays) -> Score:
    """Logits by a saved model, which holds the summed counts beside its parameters if the run had them."""
    statics = {name: a for name, a in saved.items() if name == COUNTS}
    params = tensors({name: a for name, a in saved.items() if name not in statics})
    return lambda home: learner.scores(params, statics, home)


def _gist(trial: Trial) -> str:
    if trial.failure:
        return trial.failure
    if trial.curve:
        number = min(trial.curve, key=lambda key: trial.curve[key])
        return f"validation loss {trial.curve[number]:.4f} at round {number}"
    return " ".join(f"{key} {trial.metrics[key]:.3f}" for key in ("loss", "auc", "mr0", "hr20"))
