"""Causes of FedGA's denominators √v_t + τ: agreement of the clients, cases of C-SME, and the floor τ."""

import numpy as np

from common.arrays import Array, Arrays
from server.aggregation.optimizers import QUANTILES


def describe(before: Arrays, after: Arrays, mean_update: Arrays, magnitude: Arrays, tau: float) -> dict[str, float]:
    """Return shares and quantiles over all parameters.

    `agreement_p5` to `agreement_p95` are quantiles of |Δ̄|/Δ' where Δ' > 0; DRA enlarges the magnitude by the inverse.
    `moved` is the share with Δ' > 0, `case_1` to `case_3` are shares of the cases of C-SME (algorithms.md §2.3), and
    `below_tau` is the share with √v_t < τ.

    Args:
        before: v_{t−1}; empty before the first round, where it is τ².
        after: v_t.
        mean_update: Δ̄.
        magnitude: Δ', of the same names and shapes.
        tau: τ, floor of the denominator.
    """
    delta, large = np.abs(_flat(mean_update)), _flat(magnitude)
    old, square = _flat(before) if before else np.full(large.shape, tau**2), np.square(large)
    moved = large > 0
    agreement = np.percentile(delta[moved] / large[moved], QUANTILES) if moved.any() else np.ones(len(QUANTILES))
    shares = {"moved": moved, "case_1": old <= square, "case_2": (old > square) & (old <= 2 * square)}
    shares |= {"case_3": old > 2 * square, "below_tau": _flat(after) < tau**2}
    found = {f"agreement_p{q}": float(value) for q, value in zip(QUANTILES, agreement, strict=True)}
    return {**found, **{name: float(share.mean()) for name, share in shares.items()}}


def _flat(arrays: Arrays) -> Array:
    return np.concatenate([np.ravel(arrays[name]) for name in sorted(arrays)]).astype(np.float64)
