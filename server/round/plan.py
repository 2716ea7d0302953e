"""Plan of a run's costs: the price of each round, and what is learnt from its evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.arrays import Arrays
from server.aggregation.metrics import Evaluation
from server.aggregation.optimizers import OptimizerState
from server.aggregation.replies import Rows
from server.clients.roster import EnrolledClient
from server.round.state import RunState


@dataclass(frozen=True)
class Price:
    """Price of a round.

    Args:
        payers: Clients whose remaining budget covers it, by name.
        cost: Privacy cost of each reply of a client; 0 without noise.
        clip: Factor on the run's clip norm, at most 1.
    """

    payers: Mapping[str, EnrolledClient]
    cost: float = 0.0
    clip: float = 1.0


class CostPlan:
    """Plan of a run's costs, of which a round calls the functions in this order; here each round is free."""

    needs_clients = False
    """True if the price depends on the clients that are online."""

    def open(self, state: RunState, clients: Mapping[str, EnrolledClient]) -> Price:
        """Return the price of the next round for these clients.

        Raises:
            BudgetSpentError: Too few clients can pay, or the run ends early.
            RunError: The round's reward could not be computed; no client is charged.
        """
        return Price(clients)

    def charge(self, clients: Sequence[str], model: Arrays) -> dict[str, float]:
        """Charge the clients of the round, which train `model`; return numbers on the round for the journal."""
        return {}

    def fail(self) -> None:
        """Record that the round has missed its quorum."""

    def grade(self, state: RunState, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation of the round with its reward."""
        return evaluation

    def observe(self, state: RunState, row_ids: Sequence[Rows]) -> OptimizerState:
        """Return the stored groups of the plan after the round; empty if nothing is stored."""
        return {}
