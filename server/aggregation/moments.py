"""Server optimisers on the mean update Δ̄ (the direction to step *against*): momentum, Adam, Yogi. Pure, NumPy.

Source: Reddi et al. 2021, Algorithm 2; no bias correction, v₀ = τ².
"""

from typing import Literal

import numpy as np

from common.arrays import Array, Arrays, zeros_like

Memory = dict[str, Arrays]
"""Server-side memory by group; flat enough to be checkpointed."""


def momentum(memory: Memory, mean_update: Arrays, beta: float) -> tuple[Arrays, Memory]:
    """M ← βm + Δ̄; returns (m, memory). β = 0 is the mean itself and keeps nothing."""
    if beta == 0:
        return mean_update, memory
    m = memory.get("m") or zeros_like(mean_update)
    m = {n: beta * m[n] + d for n, d in mean_update.items()}
    return m, {**memory, "m": m}


def adaptive(
    memory: Memory,
    mean_update: Arrays,
    rule: Literal["adam", "yogi"],
    *,
    beta1: float,
    beta2: float,
    tau: float,
) -> tuple[Arrays, Memory]:
    """m/(√v + τ) with m ← β₁m + (1−β₁)Δ̄ and v by `rule`; returns (step, memory)."""
    m = memory.get("m") or zeros_like(mean_update)
    v = memory.get("v") or {n: np.full_like(d, tau**2) for n, d in mean_update.items()}
    m = {n: beta1 * m[n] + (1 - beta1) * d for n, d in mean_update.items()}
    v = {n: second_moment(rule, v[n], np.square(d), beta2) for n, d in mean_update.items()}
    step = {n: (m[n] / (np.sqrt(v[n]) + tau)).astype(d.dtype) for n, d in mean_update.items()}
    return step, {**memory, "m": m, "v": v}


def second_moment(rule: Literal["adam", "yogi"], v: Array, square: Array, beta2: float) -> Array:
    """v_t from v_{t−1} and Δ̄²: Adam's convex mean, or Yogi's step of fixed rate towards Δ̄²."""
    towards: Array = v - square if rule == "adam" else square * np.sign(v - square)
    return v - (1 - beta2) * towards
