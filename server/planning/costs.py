"""Costs of planned rounds, and the remaining budgets of clients."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from common.arrays import Arrays
from common.config.run import RunConfig
from common.config.secure_sums import count_cost, metric_cost
from common.privacy.mechanisms.registry import build_account, select_spec
from server.planning.planner import Decision, RoundDecision, RunBudget
from server.roster import EnrolledClient, Roster


@dataclass(frozen=True)
class PendingRound:
    """Decided round without a reward so far.

    Args:
        decision: Decision on the round.
        start: Model before the round.
        spent: Client -> charged cost.
        remaining_share: Minimum remaining budget of the cohort, as a share of B; NaN in runs without noise.
    """

    decision: Decision
    start: Arrays
    spent: Mapping[str, float]
    remaining_share: float

    def numbers(self) -> dict[str, float]:
        """Return the numbers for the journal."""
        return self.decision.numbers() | ({"left": self.remaining_share} if self.decision.cost else {})


def budget_of(config: RunConfig) -> RunBudget:
    """Return the privacy budget of a run's rounds; infinite without noise."""
    options = config.privacy
    if options.unit == "none":
        return RunBudget(np.inf, config.rounds, 1)
    total = build_account(options).total(options.epsilon, options.delta) - count_cost(config) - metric_cost(config)
    return RunBudget(total, config.rounds, 1, select_spec(options).cost_power, planned=options.participations)


def compute_remaining(roster: Roster, clients: Mapping[str, EnrolledClient], total: float) -> dict[str, float]:
    """Return each client's remaining budget, and store it in the roster.

    It is the minimum of the budget that the client reports and of B minus the costs of this run: a client may report an older
    ledger.
    """
    if not np.isfinite(total):
        return dict.fromkeys(clients, np.inf)
    for name, client in clients.items():
        unspent = total - roster.spent.get(name, 0.0)
        roster.clients[client.node] = replace(client, budget=min(client.budget, unspent))
    return {name: roster.clients[client.node].budget for name, client in clients.items()}


def refund(roster: Roster, repeated: RoundDecision) -> None:
    """Add back the cost of a repeated round: clients replay the same bytes and charge nothing more."""
    for node, client in roster.clients.items():
        if client.name in repeated.left:
            maximum = repeated.left[client.name]
            roster.clients[node] = replace(client, budget=min(client.budget + repeated.decision.cost, maximum))


def charge(roster: Roster, decision: Decision, nodes: Iterable[int], total: float, start: Arrays) -> PendingRound:
    """Charge the clients of a cohort in the roster; return the pending round."""
    spent: dict[str, float] = {}
    for node in nodes:
        roster.charge(node, decision.cost)
        spent[roster.name(node)] = decision.cost
    minimum = min((client.budget for client in roster.clients.values() if client.name in spent), default=0.0)
    return PendingRound(decision, start, spent, max(minimum, 0.0) / total)
