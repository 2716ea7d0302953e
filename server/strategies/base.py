"""Where a run stands, and what a paper may do its own way in a round; `server.strategies.round` does the rest."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping

from flwr.app import Message
from flwr.serverapp.strategy import Strategy

from common.arrays import Arrays
from common.tasks.registry import TASKS
from server.aggregation.optimizers import OptimizerState
from server.aggregation.row_mean import Rows
from server.roster import EnrolledClient
from server.strategies.replies import Reply
from server.strategies.spec import RoundParts

Ask = Callable[[list[Message]], Iterable[Message]]
"""Sends messages and returns their replies."""


class StrategyBase(Strategy):
    """A paper's side of a round: it overrides `update`, and of the rest what it does otherwise.

    Args:
        parts: Configuration, state and clients of the run.

    Attributes:
        cost: What a reply of the coming round may spend of its client's privacy budget; set by who plans budgets, and so
        clip: Factor on the run's clip.
        over: Whether no further round comes, so that the next evaluation is the last.
        named: Which rows of tables each reply of the last round brought, where clients name rows.
    """

    def __init__(self, parts: RoundParts) -> None:
        self.config, self.state, self.enrolment = parts.config, parts.state, parts.enrolment
        self._on_trained, self._on_evaluated = parts.on_trained, parts.on_evaluated
        self.task, self.capabilities = TASKS[parts.config.task], parts.config.capabilities
        self._ask: Ask = lambda messages: []
        self.cost, self.clip, self.over = 0.0, 1.0, False
        self.named: list[Rows] = []

    @property
    def releases(self) -> int:
        """Data-dependent replies of one client in a round."""
        return 1 + self.capabilities.extra_releases

    @property
    def coming(self) -> tuple[int, int]:
        """The coming round's number, and how many there are."""
        return self.state.round + 1, self.config.rounds

    @abstractmethod
    def update(self, memory: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """One server step from the replies, in the order of client names: the next model and the method's memory."""

    def shared(self, memory: OptimizerState, round_number: int) -> Arrays:
        """What is broadcast to a client whose reply was last counted in that round."""
        return {}

    def diagnostics(self, memory: OptimizerState) -> dict[str, float]:
        """The strategy's own numbers about the step that left this memory."""
        return {}

    def model_for(self, client: str) -> Arrays:
        """The model that a client is to train, or to measure."""
        return self.state.model

    def wanted(self, model: Arrays) -> Arrays:
        """Return the part of a model that clients send updates of."""
        private = self.task.private(model, self.capabilities)
        return {name: a for name, a in model.items() if name not in private}

    def group_of(self, client: str) -> int:
        """Which of several models is the client's; those of one group share an encoded request."""
        return 0

    def statics_for(self, client: str) -> Arrays:
        """Untrained inputs of the client's model; clients that are handed the same share an encoded request."""
        return self.state.statics

    def groups(self) -> dict[str, int]:
        """Client -> cluster, for the report."""
        return {}

    def prepare(self, clients: Mapping[str, EnrolledClient], ask: Ask, *, training: bool) -> None:
        """Ask the clients of a round whatever has to be known before they train, or are measured."""

    def polish(self, model: Arrays, replies: list[Reply]) -> Arrays:
        """The model after what a method does in a round beyond `update`, through `self._ask`."""
        return model
