"""What a planned round costs, and what clients have left of what the run promised them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from common.arrays import Arrays
from common.config import RunConfig
from common.privacy.accounts import build_account
from server.planning.planner import Budget, Decision
from server.roster import Client, Roster


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
    by_square = options.unit == "record" or options.mechanism == "gaussian"
    return Budget(total, config.rounds, 1, 2 if by_square else 1)


def left_of(client: Client, roster: Roster, total: float) -> float:
    """What a client may still be asked for: by its own word, and by what this run promised, also after a resume.

    A simulated client forgets what it spent before one; the roster does not.
    """
    return min(client.budget, total - roster.spent.get(client.name, 0.0)) if np.isfinite(total) else np.inf


def charge(roster: Roster, decision: Decision, nodes: Iterable[int], total: float, start: Arrays) -> Waiting:
    """Note what the clients that are asked will spend."""
    asked = [roster.clients[node] for node in nodes]
    for client in asked:
        roster.charge(client.node, decision.cost)
    left = min((left_of(roster.clients[client.node], roster, total) for client in asked), default=0.0)
    return Waiting(decision, start, {client.name: decision.cost for client in asked}, max(left, 0.0) / total)
