"""BGTplanner's stage 1, and its estimates M(T₀), ÔPT and Z (algorithms.md §4.6, Eq 9 and 10).

Costs are in shares of B/T.
"""

import math
from collections.abc import Collection, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from common.arrays import Floats

Stage = Literal["1a", "1b", "2"]


def stage_of(done: int, arms: int, t0: int) -> Stage:
    """Return the stage of the round after `done` rounds: K·T₀ rounds of 1a, T₀ of 1b, then 2."""
    if done < arms * t0:
        return "1a"
    return "1b" if done < (arms + 1) * t0 else "2"


def limit_t0(t0: int, arms: int, rounds: int) -> int:
    """Return T₀, lowered to limit stage 1 to half of the rounds; at least 1."""
    return min(t0, max(1, rounds // (2 * (arms + 1))))


def select_due(played: Sequence[int], arms: int, t0: int, order: Literal["blocks", "code"]) -> Collection[int]:
    """Return the arms from which stage 1a samples the next one, uniformly.

    Args:
        played: Arms of the rounds so far.
        arms: Number K of arms.
        t0: T₀.
        order: `blocks`: arms not yet played in the current block of K rounds, that is shuffled blocks. `code`: each arm T₀
            times in a row, the most expensive first.
    """
    if order == "code":
        return {arms - 1 - len(played) // t0}
    return set(range(arms)) - set(played[len(played) - len(played) % arms :])


def confidence(residuals: Floats, arms: int, rounds: int, clients: int) -> float:
    """Return (9d): M(T₀) = [(K/T₀)Σ(r − f̂₀)² + 4 ln(TN)/T₀]^{1/2}, from the residuals of stage 1b, (T₀,)."""
    t0 = len(residuals)
    return math.sqrt(arms * float(residuals @ residuals) / t0 + 4 * math.log(rounds * clients) / t0)


def best_mix(predicted: Floats, costs: Floats, allowance: float) -> float:
    """Return (9): ÔPT = max (1/T₀)Σ_tΣ_a p_{t,a} f̂₀(x_t,a), each p_t on the simplex.

    The constraint is (1/T₀)Σ_tΣ_a p_{t,a} c(a) ≤ allowance. The authors' code has integer p and omits (9e) and 1/T₀.

    Args:
        predicted: f̂₀ at the contexts of stage 1b, (T₀, K).
        costs: Costs of the arms, (K,).
        allowance: B/T + 2M(T₀); raised to the cheapest cost if below.
    """
    t0, k = predicted.shape
    result = linprog(
        -predicted.ravel() / t0,
        A_ub=np.tile(costs / t0, t0)[None],
        b_ub=[max(allowance, float(costs.min()))],
        A_eq=np.kron(np.eye(t0), np.ones((1, k))),
        b_eq=np.ones(t0),
        bounds=(0, 1),
    )
    assert result.fun is not None, result.message  # feasible (the cheapest arm) and bounded (a product of simplices)
    return -float(result.fun)


def price_bound(best: float, confidence_: float, largest: float, mode: Literal["paper", "cap"]) -> float:
    """Return Z in shares: ÔPT + M(T₀) of Eq 10, or the maximum |r| (`cap`); not negative."""
    return max(best + confidence_, 0.0) if mode == "paper" else largest


def select_candidates(due: Collection[int], affordable: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the affordable arms among the due ones; all affordable arms if none is due."""
    both = affordable[np.isin(affordable, list(due))]
    return both if len(both) else affordable


def limit_costs(arms: NDArray[np.intp], costs: Floats, allowance: float) -> NDArray[np.intp]:
    """Return the arms that cost at most the allowance; the cheapest one if there is none.

    Args:
        arms: Arms, ascending, not empty.
        costs: Costs of all arms, (K,), ascending.
        allowance: Amount that stage 1 may still spend.
    """
    within = arms[costs[arms] <= allowance]
    return within if len(within) else arms[:1]
