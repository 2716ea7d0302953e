"""Server side of a method: the hooks of a round that it overrides, and what every strategy is given."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from flwr.app import Message, RecordDict
from flwr.serverapp.strategy import Strategy

from common.arrays import Arrays
from common.config.run import RunConfig
from common.errors import BudgetSpentError
from common.methods.base import MethodSpec, MethodT
from common.tasks.registry import TASKS
from server.aggregation.metrics import Evaluation
from server.aggregation.optimizers import OptimizerState
from server.aggregation.results import Collected, Rows
from server.clients.enrolment import Enrolment
from server.clients.roster import EnrolledClient
from server.round.state import RunState, Trained
from server.secure.protocol import SumProtocol


@dataclass(frozen=True)
class RoundParts:
    """Parts of every strategy.

    Args:
        config: Configuration of the run.
        state: State of the run; replaced after each round, never modified.
        enrolment: Clients of the run.
        on_trained: Callback after each training step.
        on_evaluated: Callback after each evaluation.
        reason_to_stop: Reason why the run ends before the next round; empty if it continues.
        find_explosion: Reason why the step before an evaluation is taken back; empty if it stays.
        sums: Protocol of secure sums; None if the server sees single replies.
        on_round: Callback before each round, with the state after the last one.
        folder: Folder for replies beyond what stays in memory; None: all stay there.
    """

    config: RunConfig
    state: RunState
    enrolment: Enrolment
    on_trained: Callable[[Trained], None] = lambda trained: None
    on_evaluated: Callable[[int, Evaluation], None] = lambda number, evaluation: None
    reason_to_stop: Callable[[], str] = lambda: ""
    find_explosion: Callable[[Evaluation], str] = lambda evaluation: ""
    sums: SumProtocol | None = None
    on_round: Callable[[RunState], None] = lambda state: None
    folder: Path | None = None


@dataclass(frozen=True)
class ServerMethod(Generic[MethodT]):
    """Server side of a method.

    Args:
        spec: Method definition shared by server and clients.
        strategy: Builder of the strategy, from the method's options.
    """

    spec: MethodSpec[MethodT]
    strategy: Callable[[MethodT, RoundParts], "StrategyBase"]


AnyServerMethod = ServerMethod[Any]
"""Server side of a method with options of any class."""


SendAndReceive = Callable[[list[Message]], Iterable[Message]]
"""Sends messages and returns the replies."""


class StrategyBase(Strategy):
    """Base of a method's strategy; a subclass implements `update` and overrides further hooks if needed.

    Args:
        parts: Configuration, state and clients of the run.

    Attributes:
        cost: Privacy cost of each reply of the next round; set by a planner, 0 without noise.
        clip: Factor on the run's clip norm in the next round; set by a planner.
        is_on_test: True if the last evaluation is on test data that no decision may follow.
        is_over: True if no round follows; the next evaluation is then the last.
        row_ids: Row ids in each reply of the last round, in runs whose clients send them.
    """

    def __init__(self, parts: RoundParts) -> None:
        self.config, self.state, self.enrolment = parts.config, parts.state, parts.enrolment
        self._on_trained, self._on_evaluated = parts.on_trained, parts.on_evaluated
        self._reason_to_stop, self._on_round = parts.reason_to_stop, parts.on_round
        self.task, self.capabilities = TASKS[parts.config.task], parts.config.capabilities
        self._send: SendAndReceive = lambda messages: []
        self.cost, self.clip, self.is_over, self.is_on_test = 0.0, 1.0, False, False
        self.row_ids: list[Rows] = []

    @property
    def releases(self) -> int:
        """Number of data-dependent replies of a client per round; one in secure sums."""
        return 1 if self.config.privacy.resolved_trust == "helpers" else 1 + self.capabilities.extra_releases

    @property
    def next_round(self) -> tuple[int, int]:
        """Number of the next round, and the number of rounds."""
        return self.state.round + 1, self.config.rounds

    def require_progress(self) -> None:
        """Announce another round, and check that it is worth its cost.

        Raises:
            BudgetSpentError: The run ends early.
        """
        self._on_round(self.state)
        if reason := self._reason_to_stop():
            raise BudgetSpentError(reason)

    @abstractmethod
    def update(self, state: OptimizerState, model: Arrays, collected: Collected) -> tuple[Arrays, OptimizerState]:
        """Return the next model and method state from the results of a round."""

    def broadcast(self, state: OptimizerState, round_number: int) -> Arrays:
        """Return the further arrays for clients whose last aggregated reply was of that round."""
        return {}

    def diagnostics(self, state: OptimizerState) -> dict[str, float]:
        """Return numbers of the server step that resulted in this state."""
        return {}

    def model_for(self, client: str) -> Arrays:
        """Return the model that a client trains or evaluates."""
        return self.state.model

    def select_uploaded(self, model: Arrays) -> Arrays:
        """Return the part of a model that clients send updates of."""
        private = self.task.private(model, self.capabilities)
        return {name: a for name, a in model.items() if name not in private}

    def group_of(self, client: str) -> int:
        """Return the number of the client's model; clients of one group share an encoded request."""
        return 0

    def statics_for(self, client: str) -> Arrays:
        """Return the untrained inputs of the client's model; equal ones share an encoded request."""
        return self.state.statics

    def groups(self) -> dict[str, int]:
        """Return client -> cluster, for the report."""
        return {}

    def prepare(self, clients: Mapping[str, EnrolledClient], send: SendAndReceive, *, training: bool) -> None:
        """Exchange further messages with the clients before they train, or evaluate if not `training`."""

    def refine(self, model: Arrays, clients: list[str]) -> Arrays:
        """Return the model after further exchanges with the clients of a round, through `self._send`."""
        return model

    def _message(self, client: EnrolledClient, kind: str, content: RecordDict) -> Message:
        return Message(
            content, client.node, kind, ttl=self.config.federation.deadline, group_id=str(self.state.round + 1)
        )
