"""State of a planner as one frozen value, with BGTplanner's prices λ of budgets (algorithms.md §4.4).

λ is by entropic mirror descent. All numbers are in shares: costs divided by B/T, λ times B/T. A plan therefore does not
depend on the unit of the account. λ in the paper's unit is `total` divided by B/T.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from common.arrays import Arrays, Floats, Ints

MAX_GRADIENT = 2.0
"""Maximum |g|: a late-joining client has many shares per round, and its λ must not vanish permanently."""


@dataclass(frozen=True)
class Dual:
    """Dual variables λ ≥ 0 with ‖λ‖₁ ≤ Z, as Z times a point of the simplex.

    The last coordinate of the point is the slack. With equal budgets all λ_k are equal, and their sum follows the scalar
    recursion on λ·N.

    Args:
        bound: Z; negative before stage 2, without λ.
        names: Clients with a λ.
        weights: λ_k/Z ≥ 0, (N,).
        slack: 1 − Σ weights.
        rates: Budget of each client per round, B_k/T in shares, (N,).
    """

    bound: float
    names: tuple[str, ...]
    weights: Floats
    slack: float
    rates: Floats

    @property
    def is_open(self) -> bool:
        """True in stage 2."""
        return self.bound >= 0

    @property
    def total(self) -> float:
        """‖λ‖₁, at most Z."""
        return self.bound * float(self.weights.sum())

    def value(self, costs: Floats, active: Collection[str]) -> Floats:
        """Return ⟨λ, B/T·1 − c(a)⟩ over active clients, (K,).

        Args:
            costs: Cost of each arm, equal for all clients, (K,).
            active: Names of the active clients.
        """
        mask = np.fromiter((name in active for name in self.names), bool, len(self.names))
        lam = self.bound * self.weights[mask]
        v: Floats = float(lam @ self.rates[mask]) - float(lam.sum()) * costs
        return v


NO_DUAL = Dual(-1.0, (), np.zeros(0), 1.0, np.zeros(0))
"""Dual variables before stage 2: none."""


def open_dual(bound: float) -> Dual:
    """Return dual variables without clients, all slack; `admit` adds clients."""
    return replace(NO_DUAL, bound=bound)


def admit(dual: Dual, remaining: Mapping[str, float], rounds_left: int) -> Dual:
    """Add the clients without λ, with equal λ and a rate that lasts to the last round.

    The new λ is Z/(N+1) if all clients join at once. The existing λ shrink by a common factor.

    Args:
        dual: Dual variables of the previous round.
        remaining: Client -> remaining shares.
        rounds_left: T − t, with this round.
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
    """Remove retired clients; their weight becomes slack, and the remaining λ do not change."""
    mask = np.fromiter((name not in retired for name in dual.names), bool, len(dual.names))
    names = tuple(name for name in dual.names if name not in retired)
    freed = float(dual.weights[~mask].sum())
    return Dual(dual.bound, names, dual.weights[mask], dual.slack + freed, dual.rates[mask])


def descend(dual: Dual, spent: Mapping[str, float], eta: float) -> Dual:
    """Return Eq 8: λ_k ← Z·λ_k e^{−ηg_k}/(Σ_j λ_j e^{−ηg_j} + λ_slack) with g = B/T·1 − c(a_t).

    Args:
        dual: λ_t.
        spent: Client -> shares spent this round; 0 for clients left out.
        eta: η.
    """
    costs = np.fromiter((spent.get(name, 0.0) for name in dual.names), np.float64, len(dual.names))
    g = np.clip(dual.rates - costs, -MAX_GRADIENT, MAX_GRADIENT)
    scaled = dual.weights * np.exp(-eta * g)
    total = float(scaled.sum()) + dual.slack
    return replace(dual, weights=scaled / total, slack=dual.slack / total)


def step_size(clients: int, rounds: int) -> float:
    """Return η = 2 ln(N+1)/√T, since the simplex has N + 1 corners.

    The authors' code has ln N, which is 0 for N = 1.
    """
    return 2 * float(np.log(clients + 1)) / float(np.sqrt(rounds))


HISTORY, DUAL = "planner_history", "planner_dual"
"""Groups of a planner in the run's state."""


@dataclass(frozen=True)
class PlayedRounds:
    """History of a run's rounds, oldest first.

    Args:
        arms: Arms, (t,).
        contexts: Contexts, (t, d).
        rewards: Unscaled rewards, (t,).
        norms: Norms of the noisy mean updates, divided by the clip norm C, (t,).
    """

    arms: Ints
    contexts: Floats
    rewards: Floats
    norms: Floats

    def __len__(self) -> int:
        return len(self.arms)

    def append(self, arm: int, context: Floats, reward: float, norm: float) -> "PlayedRounds":
        """Return the history with one more round."""
        return PlayedRounds(
            np.append(self.arms, arm),
            np.vstack([self.contexts, context]),
            np.append(self.rewards, reward),
            np.append(self.norms, norm),
        )


@dataclass(frozen=True)
class PlannerState:
    """State of a planner between two rounds."""

    history: PlayedRounds
    dual: Dual = NO_DUAL
    doubts: int = 0
    """Number of decisions in a row in which no arm promised a gain."""


def empty_state(context: int = 0) -> PlannerState:
    """Return the state before the first round; `context` is the number of singular values of a context."""
    return PlannerState(PlayedRounds(np.zeros(0, np.int64), np.zeros((0, context)), np.zeros(0), np.zeros(0)))


def to_groups(state: PlannerState) -> dict[str, Arrays]:
    """Return the state as groups of arrays; names of clients are JSON bytes."""
    history, dual = state.history, state.dual
    names = np.frombuffer(json.dumps(dual.names).encode(), np.uint8)
    scalars = np.array([dual.bound, dual.slack, state.doubts])
    return {
        HISTORY: dict(vars(history)),
        DUAL: {"scalars": scalars, "names": names, "weights": dual.weights, "rates": dual.rates},
    }


def from_groups(groups: dict[str, Arrays]) -> PlannerState:
    """Return the state from the groups of `to_groups`; other groups are ignored.

    Raises:
        KeyError: A group is missing.
    """
    arrays = groups[DUAL]
    bound, slack, *rest = (float(x) for x in arrays["scalars"])  # checkpoints of earlier releases have no doubts
    names = tuple(json.loads(arrays["names"].tobytes()))
    return replace(
        PlannerState(PlayedRounds(**groups[HISTORY])),
        dual=Dual(bound, names, arrays["weights"], slack, arrays["rates"]),
        doubts=int(sum(rest)),
    )


def pack_values(values: Mapping[str, float]) -> Arrays:
    """Return one number per client as arrays; names are JSON bytes."""
    names = np.frombuffer(json.dumps(sorted(values)).encode(), np.uint8)
    return {"names": names, "values": np.array([values[name] for name in sorted(values)])}


def unpack_values(arrays: Arrays) -> dict[str, float]:
    """Return the numbers from the arrays of `pack_values`; empty if there are none."""
    if "names" not in arrays:
        return {}
    return dict(zip(json.loads(arrays["names"].tobytes()), arrays["values"].tolist(), strict=True))
