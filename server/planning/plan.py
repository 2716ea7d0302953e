"""Plan of a privacy budget: a planner sets the cost of each round (algorithms.md §4.7)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from common.arrays import Arrays, norm, sub
from common.config.run import RunConfig
from common.errors import BudgetSpentError
from common.text import count
from server.aggregation.metrics import Evaluation
from server.aggregation.optimizers import OptimizerState
from server.aggregation.replies import Rows
from server.clients.roster import EnrolledClient, Roster, cohort_size
from server.planning.planner import SLACK, Decision, Planner, RoundDecision, RunBudget, Stop
from server.planning.registry import build_planner
from server.planning.reward import build_context, check_metrics_shared, compute_reward, is_on_test_data, singular_values
from server.planning.state import PlannerState, from_groups, to_groups
from server.round.plan import CostPlan, Price
from server.round.state import RunState

REFERENCE = "planner_seen"
"""Group of the planner's last observation: metric of each client, or the last update's `norm`, and
`context`, the singular values of that update."""


@dataclass(frozen=True)
class PaidRound:
    """Round that its clients were charged for; its evaluation adds the last four values.

    Args:
        decision: Decision on the round.
        start: Model before the round.
        spent: Client -> charged cost.
        reward: Reward r_t.
        length: Norm of the aggregated update, divided by the clip norm.
        reference: Reference of the next round.
        update: Aggregated update.
    """

    decision: Decision
    start: Arrays
    spent: Mapping[str, float]
    reward: float = 0.0
    length: float = 0.0
    reference: Arrays = field(default_factory=dict)
    update: Arrays = field(default_factory=dict)


class BudgetPlan(CostPlan):
    """Plan of a phase of a run with a privacy budget or with early stopping.

    Args:
        config: Configuration of the phase.
        roster: Clients of the run, with their remaining budgets.
        budget: Privacy budget of the phase.
        on_decided: Callback with a decision before it is sent, and again if the quorum is missed.
        decision: Last decision before the server stopped; it holds for the next round.
        run: Configuration of the run; None: it has one phase.
    """

    needs_clients = True

    def __init__(
        self,
        config: RunConfig,
        roster: Roster,
        budget: RunBudget,
        on_decided: Callable[[RoundDecision], None] = lambda decision: None,
        decision: RoundDecision | None = None,
        run: RunConfig | None = None,
    ) -> None:
        self._config, self._roster, self._budget, self._run = config, roster, budget, run or config
        self._on_decided, self._decision = on_decided, decision
        self._paid: PaidRound | None = None
        self._graded: PaidRound | None = None
        helpers = config.privacy.resolved_trust == "helpers"
        self._releases = 1 if helpers else 1 + config.capabilities.extra_releases
        """Number of data-dependent replies of a client per round; one in secure sums."""

    def open(self, state: RunState, clients: Mapping[str, EnrolledClient]) -> Price:
        """Decide on the cost of the round.

        Raises:
            BudgetSpentError: Too few clients can pay, or the planner ends the run.
            RunError: The reward of the round could not be computed; no client is charged.
        """
        check_metrics_shared(self._run, clients.values())
        self._decision = self._decide(state, clients)
        self._on_decided(self._decision)
        decision, enrolled = self._decision.decision, self._roster.clients
        current = {name: enrolled.get(client.node, client) for name, client in clients.items()}
        payers = {name: one for name, one in current.items() if decision.cost * (1 - SLACK) <= one.budget}
        return Price(payers, decision.cost / self._releases, decision.clip)

    def charge(self, clients: Sequence[str], model: Arrays) -> dict[str, float]:
        """Charge the clients in the roster; return the numbers of the decision."""
        assert self._decision is not None  # opened
        decision, spent, paying = self._decision.decision, dict[str, float](), frozenset(clients)
        for client in [client for client in self._roster.clients.values() if client.name in paying]:
            self._roster.charge(client.node, decision.cost)
            spent[client.name] = decision.cost
        self._paid = PaidRound(decision, model, spent)
        left = min((client.budget for client in self._roster.clients.values() if client.name in spent), default=0.0)
        return decision.numbers() | ({"left": max(left, 0.0) / self._budget.whole} if decision.cost else {})

    def fail(self) -> None:
        """Record that the decision's round has missed its quorum."""
        if self._decision is not None:
            self._on_decided(replace(self._decision, failed=True))

    def grade(self, state: RunState, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation with the reward of the round; without one on test data or without a round."""
        paid, self._paid, self._graded = self._paid, None, None
        if paid is None:
            return evaluation
        update = sub({name: paid.start[name] for name in state.model}, state.model)
        length, before = norm(update) / self._config.privacy.clip, self._reference(state)
        if is_on_test_data(self._run, state.round):
            reward, reference = 0.0, {name: a for name, a in before.items() if name != "context"}
        else:
            reward, reference = compute_reward(self._config, evaluation, length, before)
            evaluation = replace(evaluation, notes={"reward": reward})
        self._graded = replace(paid, reward=reward, length=length, reference=reference, update=update)
        return evaluation

    def observe(self, state: RunState, row_ids: Sequence[Rows]) -> OptimizerState:
        """Return the planner's state after it has observed the graded round.

        After the last sum of a closed form it is the clients' metrics alone, which a planner of the training starts from.

        Raises:
            RunError: Training diverged.
        """
        graded, self._graded = self._graded, None
        if graded is None:
            return {}
        planner, before = self._planner(len(graded.decision.active)), self._planner_state(state)
        after = planner.observe(before, graded.decision, graded.reward, graded.spent, graded.length)
        if state.round == self._run.first_rounds:
            return {REFERENCE: graded.reference}
        matrix = build_context(graded.update, row_ids)
        reference = {**graded.reference, "context": singular_values(matrix, self._config.planner.context_size)}
        return {**to_groups(after), REFERENCE: reference}

    def _decide(self, state: RunState, available: Mapping[str, EnrolledClient]) -> RoundDecision:
        """Return the last decision if it was sent for this round, else the planner's decision.

        Raises:
            BudgetSpentError: Too few clients can pay, or the planner ends the run.
        """
        number, quorum = state.round + 1, self._config.federation.min_replies
        left, most = self._compute_remaining(available), self._budget.before + self._budget.total
        remaining = {name: min(one, most - self._roster.spent.get(name, 0.0)) for name, one in left.items()}
        last = self._decision if self._decision is not None and self._decision.number == number else None
        if last is not None and not last.failed:
            self._refund(last)
            return last
        rng = np.random.default_rng([self._config.seed, number])
        context = self._reference(state)["context"]
        decision = self._planner(len(available)).decide(self._planner_state(state), context, remaining, rng)
        if isinstance(decision, Stop):
            raise BudgetSpentError(decision.reason)
        if len(decision.active) < quorum:
            active = count(len(decision.active), "client")
            raise BudgetSpentError(f"{active} can pay another round, the round needs {quorum}")
        if last is not None:  # clients that replied to a failed round replay their reply at its cost only
            self._refund(last)
            return last
        return RoundDecision(number, decision, left)

    def _compute_remaining(self, clients: Mapping[str, EnrolledClient]) -> dict[str, float]:
        """Return each client's remaining budget for the run, and store it in the roster.

        It is the minimum of the budget that the client reports and of B minus the costs of this run: a client may report an
        older ledger.
        """
        roster, total = self._roster, self._budget.whole
        if not np.isfinite(total):
            return dict.fromkeys(clients, np.inf)
        left = {name: min(one.budget, total - roster.spent.get(name, 0.0)) for name, one in clients.items()}
        for name, client in clients.items():
            roster.clients[client.node] = replace(client, budget=left[name])
        return left

    def _refund(self, repeated: RoundDecision) -> None:
        """Add back the cost of a repeated round: clients replay the same bytes and charge nothing more."""
        for node, client in self._roster.clients.items():
            if (most := repeated.left.get(client.name)) is not None:
                budget = min(client.budget + repeated.decision.cost, most)
                self._roster.clients[node] = replace(client, budget=budget)

    def _planner(self, clients: int) -> Planner:
        asked = cohort_size(clients, self._config.federation.cohort, self._config.federation.min_replies)
        share = asked / clients if clients else 1.0
        return build_planner(self._config.planner, replace(self._budget, clients=max(clients, 1), cohort=share))

    def _planner_state(self, state: RunState) -> PlannerState:
        has_state = state.plan.keys() - {REFERENCE}
        return from_groups(state.plan) if has_state else self._planner(1).start()

    def _reference(self, state: RunState) -> Arrays:
        """Return the observation of the last round; before the first round, a context of zeros."""
        return {"context": np.zeros(self._config.planner.context_size), **state.plan.get(REFERENCE, {})}
