"""What a planned round costs, and what clients have left of what the run promised them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from common.arrays import Arrays
from common.config.run import RunConfig
from common.privacy.mechanisms.registry import build_account, select_spec
from server.planning.planner import Agreed, Budget, Decision
from server.roster import EnrolledClient, Roster


@dataclass(frozen=True)
class Waiting:
    """A round that was decided and not yet judged.

    Args:
        decision: What it costs.
        start: The model before it.
        spent: Client -> what it was asked to spend.
        left: Share of the run's budget that the client with the least of those asked has left; NaN where nothing is spent.
    """

    decision: Decision
    start: Arrays
    spent: Mapping[str, float]
    left: float

    def numbers(self) -> dict[str, float]:
        """What a journal may keep of it."""
        return self.decision.numbers() | ({"left": self.left} if self.decision.cost else {})


def budget_of(config: RunConfig) -> Budget:
    """B of a fresh client and T_max; nothing is counted where there is no noise."""
    options = config.privacy
    if options.unit == "none":
        return Budget(np.inf, config.rounds, 1)
    total = build_account(options).total(options.epsilon, options.delta)
    return Budget(total, config.rounds, 1, select_spec(options).cost_power)


def remaining(roster: Roster, clients: Mapping[str, EnrolledClient], total: float) -> dict[str, float]:
    """What clients may still be asked for: by their own word, and by what this run promised, which the roster then holds.

    A simulated client forgets what it spent before a resume; the roster does not.
    """
    if not np.isfinite(total):
        return dict.fromkeys(clients, np.inf)
    for name, client in clients.items():
        promised = total - roster.spent.get(name, 0.0)
        roster.clients[client.node] = replace(client, budget=min(client.budget, promised))
    return {name: roster.clients[client.node].budget for name, client in clients.items()}


def credit(roster: Roster, agreed: Agreed) -> None:
    """Give back what a round cost that is asked for again: who paid for it then sends the same bytes, and pays no more."""
    for node, client in roster.clients.items():
        if client.name in agreed.left:
            most = agreed.left[client.name]
            roster.clients[node] = replace(client, budget=min(client.budget + agreed.decision.cost, most))


def charge(roster: Roster, decision: Decision, nodes: Iterable[int], total: float, start: Arrays) -> Waiting:
    """Note what the clients that are asked will spend."""
    spent: dict[str, float] = {}
    for node in nodes:
        roster.charge(node, decision.cost)
        spent[roster.name(node)] = decision.cost
    left = min((client.budget for client in roster.clients.values() if client.name in spent), default=0.0)
    return Waiting(decision, start, spent, max(left, 0.0) / total)
