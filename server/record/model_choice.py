"""Choice of a run's model: the best validated round, and the end without further gains."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from common.arrays import Arrays
from common.config.run import RunConfig, keeps_rounds
from common.tasks.registry import TASKS
from server.aggregation.metrics import Evaluation
from server.record.events import Metrics, RoundEvent, Split
from server.record.folder import BEST_MODEL, RunDirectory
from server.record.result import Best
from server.round.state import RunState

if TYPE_CHECKING:
    from flwr.serverapp import Grid


class BestRound:
    """Best round among those whose metrics may select a model.

    Args:
        metric: Metric of the objective.
        higher_is_better: True if higher values are better.
        stop: Number of rounds without a gain after which the run ends; 0: never.
        min_delta: Minimum gain, in the unit of the metric.

    Attributes:
        best: Best round so far.
        newest: Newest round with such metrics; 0 before the first.
    """

    def __init__(self, metric: str, higher_is_better: bool, stop: int = 0, min_delta: float = 0.0) -> None:
        self._metric, self._sign = metric, 1.0 if higher_is_better else -1.0
        self._stop, self._min_delta = stop, min_delta
        self._reference: float | None = None
        self._highest = -math.inf
        self._improved = self.newest = 0
        self.best: Best | None = None

    def compare(self, number: int, metrics: Metrics, split: Split, selection: float = math.nan) -> bool:
        """Record a round; return True if it is the best so far. Metrics of test data never select.

        `selection` is the value that counts in place of the metric's mean; NaN: the mean counts.
        """
        if self._metric not in metrics or split == "test":
            return False
        value, self.newest = self._sign * (metrics[self._metric] if math.isnan(selection) else selection), number
        if self._reference is None or value - self._reference > self._min_delta:
            self._reference, self._improved = value, number
        if self.best is not None and value <= self._highest:
            return False
        self._highest = value
        self.best = Best(round=number, metrics=dict(metrics), split=split)
        return True

    def reason_to_stop(self) -> str:
        """Return the reason why the run ends now; empty if it continues."""
        if not self._stop or self.newest - self._improved < self._stop:
            return ""
        return (
            f"{self._metric} on validation data has not improved for {self.newest - self._improved} rounds,"
            f" since round {self._improved} (--patience {self._stop})"
        )


class EvaluatesModels(Protocol):
    """Strategy, as far as the choice of a model needs it."""

    @property
    def state(self) -> RunState:
        """State of the run."""

    def measure(self, grid: "Grid", split: str, model: Arrays, *, final: bool = False, number: int = 0) -> Evaluation:
        """Return metrics of one model for all clients, that of round `number` or, if 0, of the last round."""


class ModelChoice:
    """Best validated round of a run, and the file of its model.

    Attributes:
        rounds: The best round so far, and when the run ends.
        evaluation: Evaluation of the best round's model on test data; None if the final model is used.
    """

    def __init__(self, folder: RunDirectory, config: RunConfig) -> None:
        self._folder, self._config = folder, config
        spec, federation = TASKS[config.task], config.federation
        self._metric = spec.objective.metric
        self.rounds = BestRound(self._metric, spec.higher_is_better, federation.stop, federation.min_delta)
        self.evaluation: Evaluation | None = None

    def restore(self, event: RoundEvent) -> None:
        """Record a round of the run before it was resumed."""
        self.rounds.compare(event.round, event.metrics, event.split, event.selection)

    def record(self, number: int, evaluation: Evaluation, split: Split, state: RunState | None) -> float:
        """Record a round, and write its model if it is the best and a state is given.

        Return the value by which rounds are compared; NaN if it is the metric's mean.
        """
        selection = evaluation.selection(self._metric)
        is_best = self.rounds.compare(number, evaluation.metrics, split, selection)
        if is_best and state is not None and split == "validation" and self._is_selectable(state):
            self._folder.save_model(*model_file(self._config, state), BEST_MODEL)
        return selection

    def conclude(self, strategy: EvaluatesModels, grid: "Grid") -> None:
        """Compare the best round with the last one, and measure its model on test data if it is better.

        Clients then store that model as the finished one.
        """
        state, rounds = strategy.state, self.rounds
        if rounds.best is None or rounds.best.split != "validation" or not self._is_selectable(state):
            return
        if rounds.newest < state.round:
            last = strategy.measure(grid, "validation", state.model)
            self.record(state.round, last, "validation", state)
        if rounds.best.round < state.round and (self._folder.path / BEST_MODEL).exists():
            saved, _ = self._folder.load_model(BEST_MODEL)
            model = {name: a for name, a in saved.items() if name in state.model}
            number = rounds.best.round if keeps_rounds(self._config) else 0
            self.evaluation = strategy.measure(grid, "test", model, final=True, number=number)
            rounds.best = replace(rounds.best, test=dict(self.evaluation.metrics))

    def _is_selectable(self, state: RunState) -> bool:
        """Return True if the model of an earlier round can replace the final one.

        It cannot if clients keep layers or whole models of the last round alone, or if each cluster has its own model.
        """
        capabilities = self._config.capabilities
        if self._config.federation.deliver == "last" or capabilities.own_model not in ("none", "adapted"):
            return False
        return keeps_rounds(self._config) or not TASKS[self._config.task].private(state.model, capabilities)


def model_file(config: RunConfig, state: RunState) -> tuple[Arrays, dict[str, str]]:
    """Return the arrays and the header of a model file."""
    header = {"method": config.method, "task": config.task, "round": str(state.round)}
    return {**state.model, **state.statics}, header
