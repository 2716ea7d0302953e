"""Mean over clients with different numbers of local steps. Pure, NumPy.

With d_k = Δ_k/τ_k the mean update is mean(τ)·mean(d_k) (algorithms.md §1.4). It equals mean(Δ_k) if all τ_k are equal.
The plain mean of unequal τ_k favors clients with more steps.
"""

from collections.abc import Iterable, Sequence

from common.arrays import Arrays, mean, scale


def mean_update(updates: Iterable[Arrays], steps: Sequence[int], weights: Sequence[float]) -> Arrays:
    """Return Δ̄ = τ̄ · Σ p_k Δ_k/τ_k with τ̄ = Σ p_k τ_k; exactly Σ p_k Δ_k if all τ_k are equal."""
    if len(set(steps)) == 1:
        return mean(updates, weights)
    total = sum(weights)
    mean_steps = sum(w * t for w, t in zip(weights, steps, strict=True)) / total
    per_step = (scale(u, mean_steps / t) for u, t in zip(updates, steps, strict=True))
    return mean(per_step, weights)
