"""Runs of the real thing (`deploy.simulation.simulate`), each remembered in a cache folder so that a killed run goes on."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path

from benchmarks.memory import Memory
from benchmarks.rules.experiments import ROUNDS, TUNING_SEED, Experiment, Point
from benchmarks.rules.measure import Metrics, Score, catalogue_of, measure, validation_loss
from benchmarks.studies import passing
from client.tasks.rules.data.homes import Homes, larger_than
from client.tasks.rules.data.ifttt import Setup
from client.tasks.rules.data.reader import read_homes
from client.tasks.rules.learner import RulesLearner
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import FedloomError
from common.models import tensors
from common.options import Scalar
from common.tasks.rules.counts import COUNTS
from common.tasks.rules.task import TASK
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
    """A result is not known, and nothing is to be computed."""


@dataclass(frozen=True)
class Choice:
    """The point and the stopping round with the least validation loss."""

    point: int
    round: int
    loss: float


class Bench:
    """One setup of the data, and what is known of it.

    Args:
        folder: The data set in the RecRules form.
        setup: A or B.
        memory: Where results are remembered.
    """

    def __init__(self, folder: Path, setup: Setup, memory: Memory) -> None:
        self.setup, self.memory, self._folder = setup, memory, folder

    @cached_property
    def dataset(self) -> Homes:
        """Read when first needed."""
        whole = read_homes(self._folder, setup=self.setup)
        return Homes(larger_than(whole.units, 2), whole.vocabulary)

    def learner(self, config: RunConfig) -> RulesLearner:
        """All homes as one client."""
        return RulesLearner(config.task_run(TASK, self.dataset.vocabulary), self.dataset)

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
        """A result that is known, or computed.

        Raises:
            NotYetComputed: It is not known and must not be computed.
        """
        found = self.memory.recall(f"{self.setup}-{key}", lambda: asdict(compute()), lambda made: _gist(Trial(**made)))
        if found is None:
            raise NotYetComputed(key)
        return Trial(**found)

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
        names = self.memory.folder / f"catalogue-{self.setup}.json"
        names.write_text(self.dataset.vocabulary.to_json(), "utf-8")
        config = parse({**flat, "run-id": run_id, "catalogue": str(names)})
        started = time.perf_counter()
        with passing(self.memory.folder, run_id) as folder:
            try:
                simulate(config, self.dataset, self.memory.folder, clients=int(experiment.central), together=TOGETHER)
            except FedloomError as error:
                return Trial({}, {}, time.perf_counter() - started, str(error).partition(";")[0], flat)
            seconds = time.perf_counter() - started
            trial = result(config, folder)
        return Trial(trial.curve, trial.metrics, seconds, config=flat)

    def _tuning_result(self, config: RunConfig, folder: RunDirectory) -> Trial:
        rounds = [event for event in folder.events() if isinstance(event, Round) and event.metrics]
        curve = {str(e.round): e.metrics["loss"] for e in rounds if e.round < config.rounds}
        learner = self.learner(config)
        curve[str(config.rounds)] = validation_loss(learner.splits, _scorer(learner, folder.load_model()[0]))
        return Trial({number: loss for number, loss in curve.items() if math.isfinite(loss)}, {}, 0)

    def _test_result(self, config: RunConfig, folder: RunDirectory) -> Trial:
        learner, catalogue = self.learner(config), self.dataset.vocabulary
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
