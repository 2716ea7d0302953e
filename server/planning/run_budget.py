"""Privacy budget of a run, and its even share of a round."""

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class RunBudget:
    """Privacy budget of a run.

    Args:
        total: Budget B of a client before the first round, in the unit of the account; infinite in runs without noise.
        rounds: Number T_max of rounds.
        clients: Number N of clients.
        power: Exponent of 1/noise in the cost: 2 for `gaussian` (ρ ∝ 1/σ²), 1 for `laplace` (ε ∝ 1/b).
        cohort: Share q of the clients that a round asks.
        planned: Number of rounds of a client over which B is spread; 0 to derive it from q.
    """

    total: float
    rounds: int
    clients: int
    power: Literal[1, 2] = 2
    cohort: float = 1.0
    planned: int = 0

    @property
    def participations(self) -> int:
        """Number of rounds over which a client's budget is spread: T·q and two standard deviations, at most T."""
        expected = self.rounds * self.cohort
        derived = math.ceil(expected + 2 * math.sqrt(expected * (1 - self.cohort)))
        return min(self.planned or derived, self.rounds)

    @property
    def share(self) -> float:
        """Even share of a round in which the client takes part; B/T if it takes part in all."""
        return self.total / self.participations
