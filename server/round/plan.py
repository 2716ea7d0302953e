"""Plan of a run's costs: the price of each round, and what is learnt from its evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

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
        cost: Privacy cost of each reply of a client; 0 without noise.
        clip: Factor on the run's clip norm, at most 1.
    """

    cost: float = 0.0
    clip: float = 1.0


class Plan(Protocol):
    """Plan of a run's costs; a round calls its functions in this order."""

    needs_clients: bool
    """True if the price depends on the clients that are online."""

    def open(self, state: RunState, clients: Mapping[str, EnrolledClient]) -> Price:
        """Return the price of the next round for these clients.

        Raises:
            BudgetSpentError: Too few clients can pay, or the run ends early.
            RunError: The round's reward could not be computed; no client is charged.
        """

    def can_pay(self, client: EnrolledClient) -> bool:
        """Return True if a client's remaining budget covers the price."""

    def charge(self, clients: Sequence[str], model: Arrays) -> None:
        """Charge the clients of the round; `model` is the one that they train."""

    def fail(self) -> None:
        """Record that the round has missed its quorum."""

    def numbers(self) -> dict[str, float]:
        """Return numbers on the round for the journal."""

    def grade(self, state: RunState, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation of the round with its reward."""

    def observe(self, state: RunState, row_ids: Sequence[Rows]) -> OptimizerState:
        """Return the stored groups of the plan after the round; empty if nothing is stored."""


class NoPlan:
    """Plan of runs without a budget: each round is free."""

    needs_clients = False

    def open(self, state: RunState, clients: Mapping[str, EnrolledClient]) -> Price:
        """Return a price of 0."""
        return Price()

    def can_pay(self, client: EnrolledClient) -> bool:
        """Return True."""
        return True

    def charge(self, clients: Sequence[str], model: Arrays) -> None:
        """Charge nothing."""

    def fail(self) -> None:
        """Record nothing."""

    def numbers(self) -> dict[str, float]:
        """Return no numbers."""
        return {}

    def grade(self, state: RunState, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation as it is."""
        return evaluation

    def observe(self, state: RunState, row_ids: Sequence[Rows]) -> OptimizerState:
        """Return nothing."""
        return {}
