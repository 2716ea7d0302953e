"""BGTplanner's bandit: Gaussian process with time decay, stage 1, and inverse-gap sampling."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from common.arrays import Floats

MIN_REWARD_SCALE, MIN_CONTEXT_SCALE = 1e-6, 1e-100
"""Minimum divisors of rewards and of contexts; a quotient by less may be infinite."""


@dataclass(frozen=True)
class Scales:
    """Scales of arms, contexts and rewards.

    Args:
        arms: First input of each arm, (K,).
        contexts: Divisors of contexts, (d,).
        reward: Divisor of rewards.
        limit: Maximum absolute scaled reward.
    """

    arms: Floats
    contexts: Floats
    reward: float
    limit: float

    def inputs(self, arms: NDArray[np.integer], contexts: Floats) -> Floats:
        """Return the predictor's inputs, (n, 1 + d), from arms (n,) and contexts (n, d)."""
        return np.column_stack([self.arms[arms], contexts / self.contexts])

    def rewards(self, rewards: Floats) -> Floats:
        """Return scaled and clipped rewards, (n,)."""
        return np.clip(rewards / self.reward, -self.limit, self.limit)


def standardize(costs: Floats, contexts: Floats, rewards: Floats) -> Scales:
    """Return scales to costs in [0, 1], contexts of mean 1 and rewards in [−1, 1].

    Args:
        costs: Costs of the arms, (K,), ascending.
        contexts: Contexts of stage 1, (n, d).
        rewards: Rewards of stage 1, (n,).
    """
    span = float(costs[-1] - costs[0])
    mean = contexts.mean(axis=0)
    largest = max(float(np.abs(rewards).max()), MIN_REWARD_SCALE)
    return Scales((costs - costs[0]) / (span or 1.0), np.where(mean > MIN_CONTEXT_SCALE, mean, 1.0), largest, 1.0)


def identity_scales(arms: int, context: int) -> Scales:
    """Return scales that leave contexts and rewards unchanged; the input of an arm is its index."""
    return Scales(np.arange(arms, dtype=np.float64), np.ones(context), 1.0, np.inf)


JITTER = 1e-8
"""Minimum added to the diagonal; Cholesky needs it for a smaller σ² and repeated inputs."""


@dataclass(frozen=True)
class Kernel:
    """Kernel of Eq 4, k(x_i, x_j) = exp(−‖x_i−x_j‖²/(2ℓ²))·(1−ω)^{|i−j|/2}.

    Args:
        length_scale: ℓ.
        omega: ω.
        sigma: Standard deviation σ of the observation error of a reward.
    """

    length_scale: float
    omega: float
    sigma: float

    def __call__(self, left: Floats, right: Floats, lags: Floats) -> Floats:
        """Return the covariances, (n, m), of inputs (n, p) and (m, p) that are `lags`, (n, m), rounds apart."""
        squared = cdist(left, right, "sqeuclidean")
        k: Floats = np.exp(-squared / (2 * self.length_scale**2)) * (1 - self.omega) ** (np.abs(lags) / 2)
        return k


@dataclass(frozen=True)
class Observations:
    """Observations of the Gaussian process.

    Args:
        inputs: Inputs, (n, p).
        rewards: Rewards, (n,).
        rounds: Round of each observation, (n,).
    """

    inputs: Floats
    rewards: Floats
    rounds: Floats


def posterior(kernel: Kernel, observations: Observations, queries: Floats, rounds: Floats) -> tuple[Floats, Floats]:
    """Return Eq 5: means k_*ᵀ(K+σ²I)⁻¹r and variances 1 − k_*ᵀ(K+σ²I)⁻¹k_*, (m,) each.

    The prior mean is 0.
    The authors' code adds σ² to every entry of K and rounds to four decimals; this function does neither.

    Args:
        kernel: k and σ.
        observations: At least one observation.
        queries: Inputs of the predictions, (m, p).
        rounds: Round of each query, (m,).
    """
    gram = kernel(observations.inputs, observations.inputs, np.subtract.outer(observations.rounds, observations.rounds))
    gram[np.diag_indices_from(gram)] += max(kernel.sigma**2, JITTER)
    factor = cho_factor(gram, lower=True)
    cross = kernel(observations.inputs, queries, np.subtract.outer(observations.rounds, rounds))
    mean: Floats = cross.T @ cho_solve(factor, observations.rewards)
    explained = np.einsum("nm,nm->m", cross, cho_solve(factor, cross))
    return mean, np.maximum(1 - explained, 0.0)


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


MAX_GAP = 2.0
"""Maximum gap, the width of standardized rewards; every arm has a probability of at least 1/(K + 2γ)."""


def probabilities(values: Floats, gamma: float) -> Floats:
    """Return p(a) = 1/(K + γ(L(a*) − L(a))) for a ≠ a*, and the rest for a*; (K,), positive, of sum 1.

    Args:
        values: L_t(a) of Eq 11, (K,).
        gamma: γ ≥ 0; 0 is the uniform distribution.
    """
    best = int(np.argmax(values))
    gaps = np.clip(values[best] - values, 0.0, MAX_GAP)
    p: Floats = 1 / (len(values) + gamma * gaps)
    p[best] = 0.0
    p[best] = 1 - p.sum()
    return p


def exploitation(arms: int, rounds: int, size: int) -> float:
    """Return γ = 2√(KT/(m ln T)).

    Args:
        arms: Number K of arms.
        rounds: Number T of rounds; ln T is at least 1.
        size: m: the number d + 1 of the predictor's inputs, or N + 2 as in the authors' code.
    """
    return 2 * math.sqrt(arms * rounds / (size * max(math.log(rounds), 1.0)))
