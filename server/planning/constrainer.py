"""BGTplanner's constrainer: what budget is worth to each client, by entropic mirror descent (algorithms.md §4.4).

Everything is in shares: costs over B/T, and λ times B/T. A plan is then the same whatever unit the account has; λ in the
paper's unit is `total` over B/T.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from server.planning.arms import FloatArray

MAX_GRADIENT = 2.0
"""Largest |g|: a client that joins late has many shares a round, and its λ must not vanish for good."""


@dataclass(frozen=True)
class Dual:
    """λ ≥ 0 with ‖λ‖₁ ≤ Z, as Z times a point of the simplex whose last coordinate is the slack.

    With equal budgets all λ_k are equal, and their sum follows the scalar recursion on λ·N.

    Args:
        bound: Z; negative before stage 2, when there is no λ.
        names: Clients that have a λ.
        weights: (N,), λ_k/Z, ≥ 0.
        slack: 1 − Σ weights.
        rates: (N,), what each may spend a round, B_k/T in shares.
    """

    bound: float
    names: tuple[str, ...]
    weights: FloatArray
    slack: float
    rates: FloatArray

    @property
    def opened(self) -> bool:
        """Whether stage 2 has begun."""
        return self.bound >= 0

    @property
    def total(self) -> float:
        """‖λ‖₁, at most Z."""
        return self.bound * float(self.weights.sum())

    def value(self, costs: FloatArray, active: Collection[str]) -> FloatArray:
        """⟨λ, B/T·1 − c(a)⟩ over active clients: (K,) from costs (K,) that are the same for each of them."""
        here = np.fromiter((name in active for name in self.names), bool, len(self.names))
        lam = self.bound * self.weights[here]
        v: FloatArray = float(lam @ self.rates[here]) - float(lam.sum()) * costs
        return v


CLOSED = Dual(-1.0, (), np.zeros(0), 1.0, np.zeros(0))
"""No λ yet."""


def open_dual(bound: float) -> Dual:
    """Z is known and all of it is slack; clients come in by `admit`."""
    return replace(CLOSED, bound=bound)


def admit(dual: Dual, remaining: Mapping[str, float], rounds_left: int) -> Dual:
    """Give each client without a λ the same one, Z/(N+1) if all come at once, and a rate that lasts to the end.

    Args:
        dual: Whatever λ there are; they shrink by a common factor to make room.
        remaining: Client -> shares left.
        rounds_left: T − t, this round included.
    """
    new = tuple(sorted(remaining.keys() - set(dual.names)))
    if not new:
        return dual
    room = len(dual.names) + 1
    keep, each = room / (room + len(new)), 1 / (room + len(new))
    weights = np.concatenate([keep * dual.weights, np.full(len(new), each)])
    rates = np.concatenate([dual.rates, [remaining[name] / rounds_left for name in new]])
    return Dual(dual.bound, dual.names + new, weights, keep * dual.slack, rates)


def dismiss(dual: Dual, retired: Collection[str]) -> Dual:
    """Without those who can pay no more; their weight becomes slack, so that the others' λ stay."""
    stay = np.fromiter((name not in retired for name in dual.names), bool, len(dual.names))
    names = tuple(name for name in dual.names if name not in retired)
    gone = float(dual.weights[~stay].sum())
    return Dual(dual.bound, names, dual.weights[stay], dual.slack + gone, dual.rates[stay])


def descend(dual: Dual, spent: Mapping[str, float], eta: float) -> Dual:
    """Eq 8: λ_k ← Z·λ_k e^{−ηg_k}/(Σ_j λ_j e^{−ηg_j} + λ_slack) with g = B/T·1 − c(a_t).

    Args:
        dual: λ_t.
        spent: Client -> shares spent this round; 0 for those left out.
        eta: η.
    """
    paid = np.fromiter((spent.get(name, 0.0) for name in dual.names), np.float64, len(dual.names))
    g = np.clip(dual.rates - paid, -MAX_GRADIENT, MAX_GRADIENT)
    grown = dual.weights * np.exp(-eta * g)
    whole = float(grown.sum()) + dual.slack
    return replace(dual, weights=grown / whole, slack=dual.slack / whole)


def step_size(clients: int, rounds: int) -> float:
    """η = 2 ln(N+1)/√T; the authors' code has ln N, which never moves a λ where N = 1, and the simplex has N + 1 corners."""
    return 2 * float(np.log(clients + 1)) / float(np.sqrt(rounds))
