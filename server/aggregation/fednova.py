"""Averaging clients that made different numbers of local steps. Pure, NumPy.

With d_k = Δ_k/τ_k the mean update is mean(τ)·mean(d_k) (algorithms.md §1.4): equal to mean(Δ_k) where all τ_k agree, and
right where they do not, while the plain mean drifts towards those who step more.
"""

from collections.abc import Sequence

from common.arrays import Arrays, mean, scale


def mean_update(updates: Sequence[Arrays], steps: Sequence[int], weights: Sequence[float]) -> Arrays:
    """Δ̄ = τ̄ · Σ p_k Δ_k/τ_k with τ̄ = Σ p_k τ_k; exactly Σ p_k Δ_k where all τ_k are equal."""
    if len(set(steps)) == 1:
        return mean(updates, weights)
    total = sum(weights)
    mean_steps = sum(w * t for w, t in zip(weights, steps, strict=True)) / total
    per_step = [scale(u, mean_steps / t) for u, t in zip(updates, steps, strict=True)]
    return mean(per_step, weights)
