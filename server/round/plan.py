"""Strategy around any other one: a planner sets the privacy cost of each round (algorithms.md §4.7)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from common.arrays import Arrays, norm, sub
from common.config.run import RunConfig
from common.errors import BudgetSpentError, QuorumError
from common.text import count
from server.aggregation.metrics import Evaluation
from server.clients.roster import EnrolledClient, cohort_size
from server.methods.registry import build_strategy
from server.planning.planner import (
    PendingRound,
    Planner,
    RoundDecision,
    RunBudget,
    Stop,
    charge,
    compute_remaining,
    refund,
)
from server.planning.registry import build_planner
from server.planning.reward import build_context, check_metrics_shared, compute_reward, is_on_test_data, singular_values
from server.planning.state import PlannerState, from_groups, to_groups
from server.round.method import RoundParts
from server.round.state import RunState, Trained

REFERENCE = "planner_seen"
"""Group of the planner's last observation: metric of each client, or the last update's `norm`, and
`context`, the singular values of that update."""


class PlannedStrategy(Strategy):
    """Planner around a strategy: it decides on the cost of a round, and observes the reward.

    Args:
        parts: Parts of the inner strategy; its callbacks also receive the numbers and rewards of the plan.
        budget: Privacy budget of the run.
        on_observed: Callback with the state after the planner has observed a round.
        on_decided: Callback with a decision before it is sent, and again if the quorum is missed.
        decision: Last decision before the server stopped; it holds for the next round.
    """

    def __init__(
        self,
        parts: RoundParts,
        budget: RunBudget,
        on_observed: Callable[[RunState], None],
        on_decided: Callable[[RoundDecision], None] = lambda decision: None,
        decision: RoundDecision | None = None,
    ) -> None:
        self.inner = build_strategy(replace(parts, on_trained=self._trained, on_evaluated=self._evaluated))
        self._budget = budget
        self._on_trained, self._on_evaluated, self._on_observed = parts.on_trained, parts.on_evaluated, on_observed
        self._on_decided, self._decision = on_decided, decision
        self._pending: PendingRound | None = None
        self.take = self.inner.take

    @property
    def config(self) -> RunConfig:
        """Configuration of the run."""
        return self.inner.config

    @property
    def state(self) -> RunState:
        """State of the run, with the planner's state."""
        return self.inner.state

    @state.setter
    def state(self, state: RunState) -> None:
        self.inner.state = state

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Decide on the cost of the round, and send requests to clients that can pay.

        Raises:
            BudgetSpentError: Too few clients can pay, or the planner ends the run.
            RunError: The reward of the round could not be computed; no client is charged.
        """
        self.inner.require_progress()
        roster, number = self.inner.enrolment.roster, self.state.round + 1
        available = self.inner.enrolment.gather(grid, self.config.federation.min_replies)
        check_metrics_shared(self.config, available.values())
        self._decision = self._decide(number, available)
        decision = self._decision.decision
        self._on_decided(self._decision)
        self.inner.cost, self.inner.clip = decision.cost / self.inner.releases, decision.clip
        messages = list(self.inner.configure_train(server_round, arrays, config, grid))
        paying = frozenset(self.inner.paying)
        nodes = [client.node for client in roster.clients.values() if client.name in paying]
        self._pending = charge(roster, decision, nodes, self._budget.total, self.state.model)
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Make the inner strategy's step.

        Raises:
            QuorumError: Too few usable replies.
        """
        try:
            return self.inner.aggregate_train(server_round, replies)
        except QuorumError:
            if self._decision is not None and not self.inner.has_pending_sum:
                self._on_decided(replace(self._decision, failed=True))
            raise

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the inner strategy's evaluation requests."""
        return self.inner.configure_evaluate(server_round, arrays, config, grid)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return the inner strategy's metrics."""
        return self.inner.aggregate_evaluate(server_round, replies)

    def summary(self) -> None:
        """Log the inner strategy's method and options."""
        self.inner.summary()

    def conclude(self, grid: Grid) -> None:
        """Evaluate the final model with the inner strategy."""
        self.inner.conclude(grid)

    def can_exclude(self, grid: Grid) -> bool:
        """Return True if the last round may be repeated without the senders of unusable replies."""
        return self.inner.can_exclude(grid)

    def measure(self, grid: Grid, split: str, model: Arrays, *, final: bool = False, number: int = 0) -> Evaluation:
        """Return metrics of one model, as the inner strategy does."""
        return self.inner.measure(grid, split, model, final=final, number=number)

    def _decide(self, number: int, available: Mapping[str, EnrolledClient]) -> RoundDecision:
        """Return the last decision if it was sent for this round, else the planner's decision.

        Raises:
            BudgetSpentError: Too few clients can pay, or the planner ends the run.
        """
        remaining = compute_remaining(self.inner.enrolment.roster, available, self._budget.total)
        last = self._decision if self._decision is not None and self._decision.number == number else None
        if last is not None and not last.failed:
            refund(self.inner.enrolment.roster, last)
            return last
        rng = np.random.default_rng([self.config.seed, number])
        context = self._reference()["context"]
        decision = self._planner(len(available)).decide(self._planner_state(), context, remaining, rng)
        if isinstance(decision, Stop):
            raise BudgetSpentError(decision.reason)
        quorum = self.config.federation.min_replies
        if len(decision.active) < quorum:
            active = count(len(decision.active), "client")
            raise BudgetSpentError(f"{active} can pay another round, the round needs {quorum}")
        if last is not None:  # clients that replied to a failed round replay their reply at its cost only
            refund(self.inner.enrolment.roster, last)
            return last
        return RoundDecision(number, decision, remaining)

    def _planner(self, clients: int) -> Planner:
        asked = cohort_size(clients, self.config.federation.cohort, self.config.federation.min_replies)
        share = asked / clients if clients else 1.0
        return build_planner(self.config.planner, replace(self._budget, clients=max(clients, 1), cohort=share))

    def _planner_state(self) -> PlannerState:
        return from_groups(self.state.plan) if self.state.plan else self._planner(1).start()

    def _reference(self) -> Arrays:
        """Return the observation of the last round; before the first round, a context of zeros."""
        return self.state.plan.get(REFERENCE) or {"context": np.zeros(self.config.planner.context_size)}

    def _trained(self, trained: Trained) -> None:
        numbers = self._pending.numbers() if self._pending else {}
        self._on_trained(replace(trained, server={**trained.server, **numbers}))

    def _evaluated(self, number: int, evaluation: Evaluation) -> None:
        """Compute the reward of the pending round, if there is one, and let the planner observe it."""
        pending, self._pending = self._pending, None
        if pending is None:
            self._on_evaluated(number, evaluation)
            return
        update = sub({name: pending.start[name] for name in self.state.model}, self.state.model)
        length = norm(update) / self.config.privacy.clip
        if is_on_test_data(self.config, number):
            reward, reference = 0.0, {name: a for name, a in self._reference().items() if name != "context"}
            self._on_evaluated(number, evaluation)
        else:
            reward, reference = compute_reward(self.config, evaluation, length, self._reference())
            self._on_evaluated(number, replace(evaluation, notes={"reward": reward}))

        planner = self._planner(len(pending.decision.active))
        after = planner.observe(self._planner_state(), pending.decision, reward, pending.spent, length)
        matrix = build_context(update, self.inner.row_ids)
        reference["context"] = singular_values(matrix, self.config.planner.context_size)
        self.state = replace(self.state, plan={**to_groups(after), REFERENCE: reference})
        self._on_observed(self.state)
