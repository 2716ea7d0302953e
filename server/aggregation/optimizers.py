"""Server optimizers on the mean update Δ̄ (the direction to step *against*). Pure, NumPy.

Source: Reddi et al. 2021, Algorithm 2; no bias correction, v₀ = τ². FedGA (algorithms.md §2.2–2.3) is the same step with
another magnitude in v (DRA) and other rules for v (C-SME).
"""

from typing import Literal

import numpy as np

from common.arrays import Array, Arrays, zeros_like

OptimizerState = dict[str, Arrays]
"""Server-side state by group, flat for checkpoints."""

Rule = Literal["saturated", "ramp", "quadratic", "adam", "yogi", "adagrad"]
"""Update rule of v towards Δ'²: three readings of C-SME, or that of FedAdam, FedYogi, FedAdagrad."""

QUANTILES = (5, 25, 50, 75, 95)


def momentum(memory: OptimizerState, mean_update: Arrays, beta: float) -> tuple[Arrays, OptimizerState]:
    """Return (m, memory) with m ← βm + Δ̄; β = 0 is the mean itself and stores nothing."""
    if beta == 0:
        return mean_update, memory
    m = memory.get("m") or zeros_like(mean_update)
    m = {n: beta * m[n] + d for n, d in mean_update.items()}
    return m, {**memory, "m": m}


def adaptive(
    memory: OptimizerState,
    mean_update: Arrays,
    rule: Rule,
    magnitude: Arrays | None = None,
    /,
    *,
    beta1: float,
    beta2: float,
    tau: float,
) -> tuple[Arrays, OptimizerState]:
    """Return (step, memory): m/(√v + τ) with m ← β₁m + (1−β₁)Δ̄ and v by `rule` from Δ'².

    Args:
        memory: Groups `m` and `v`, absent before the first round; other groups are passed on.
        mean_update: Δ̄, signed.
        rule: Update rule of v.
        magnitude: Δ', of the same names and shapes; |Δ̄| if absent (no DRA).
        beta1: β₁, decay of m.
        beta2: β₂, decay of v.
        tau: τ, floor of the denominator.
    """
    m = memory.get("m") or zeros_like(mean_update)
    v = memory.get("v") or {n: np.full_like(d, tau**2) for n, d in mean_update.items()}
    m = {n: beta1 * m[n] + (1 - beta1) * d for n, d in mean_update.items()}
    v = {n: second_moment(rule, v[n], np.square(d), beta2) for n, d in (magnitude or mean_update).items()}
    step = {n: (m[n] / (np.sqrt(v[n]) + tau)).astype(d.dtype) for n, d in mean_update.items()}
    return step, {**memory, "m": m, "v": v}


def second_moment(rule: Rule, v: Array, square: Array, beta2: float) -> Array:
    """Return v_t = v_{t−1} − (1−β₂)Δ'²·h(v_{t−1}/Δ'²) (algorithms.md §2.3); Adagrad: v_t = v_{t−1} + Δ'²."""
    return v + square if rule == "adagrad" else v - (1 - beta2) * _decrement(rule, v, square)


def _decrement(rule: Rule, v: Array, square: Array) -> Array:
    """Return Δ'²·h(V); v is compared with Δ'² and 2Δ'², since V = v/Δ'² is 0/0 for unchanged parameters."""
    gap: Array = v - square
    match rule:
        case "adam":
            return gap
        case "yogi":
            return square * np.sign(gap)
        case "saturated":
            return np.minimum(gap, square)
        case "quadratic":
            inner = np.where(gap > 0, _squared_gap(gap, square), gap)
        case _:
            inner = np.where(gap > 0, gap + (gap - square), -square)
    return np.where(gap > square, square, inner)


def _squared_gap(gap: Array, square: Array) -> Array:
    """Return Δ'²(V−1)² = gap·(gap/Δ'²) where 0 < gap ≤ Δ'², so the quotient is at most 1; 0 elsewhere."""
    middle = (gap > 0) & (gap <= square)
    share: Array = np.divide(gap, square, out=np.zeros_like(gap), where=middle)
    return gap * share


def effective_rates(v: Arrays, eta: float, tau: float) -> dict[str, float]:
    """Return quantiles of the server's step size η/(√v + τ), `rate_p5` to `rate_p95` (FedGA, Figure 5).

    Quantiles are over all parameters.
    """
    if not any(a.size for a in v.values()):
        return {}
    every = np.concatenate([np.ravel(a) for a in v.values()])
    falling = np.percentile(every, [100 - q for q in QUANTILES], method="nearest").astype(np.float64)
    rates = eta / (np.sqrt(falling) + tau)
    return {f"rate_p{q}": float(rate) for q, rate in zip(QUANTILES, rates, strict=True)}
