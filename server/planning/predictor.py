"""BGTplanner's predictor: a Gaussian process over (arm, context) that forgets (algorithms.md §4.3, Eq 4 and 5)."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from server.planning.arms import FloatArray

JITTER = 1e-8
"""Least number on the diagonal; Cholesky needs it where σ² is smaller and inputs repeat."""


@dataclass(frozen=True)
class Kernel:
    """Eq 4, k(x_i, x_j) = exp(−‖x_i−x_j‖²/(2ℓ²))·(1−ω)^{|i−j|/2}, and the noise of a reward.

    Args:
        length_scale: ℓ.
        omega: ω.
        sigma: σ.
    """

    length_scale: float
    omega: float
    sigma: float

    def __call__(self, left: FloatArray, right: FloatArray, lags: FloatArray) -> FloatArray:
        """(n, m) covariances of inputs (n, p) and (m, p) that lie `lags` (n, m) rounds apart."""
        squared = cdist(left, right, "sqeuclidean")
        k: FloatArray = np.exp(-squared / (2 * self.length_scale**2)) * (1 - self.omega) ** (np.abs(lags) / 2)
        return k


@dataclass(frozen=True)
class Observations:
    """What a Gaussian process has seen.

    Args:
        inputs: (n, p).
        rewards: (n,).
        rounds: (n,), when.
    """

    inputs: FloatArray
    rewards: FloatArray
    rounds: FloatArray


def posterior(
    kernel: Kernel, seen: Observations, queries: FloatArray, rounds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Eq 5: means k_*ᵀ(K+σ²I)⁻¹r and variances 1 − k_*ᵀ(K+σ²I)⁻¹k_* under a zero mean, both (m,).

    The authors' code adds σ² to every entry of K and rounds to four decimals; this does neither.

    Args:
        kernel: k and σ.
        seen: n ≥ 1 rounds.
        queries: (m, p).
        rounds: (m,), when each query lies.
    """
    gram = kernel(seen.inputs, seen.inputs, np.subtract.outer(seen.rounds, seen.rounds))
    gram[np.diag_indices_from(gram)] += max(kernel.sigma**2, JITTER)
    factor = cho_factor(gram, lower=True)
    cross = kernel(seen.inputs, queries, np.subtract.outer(seen.rounds, rounds))
    mean: FloatArray = cross.T @ cho_solve(factor, seen.rewards)
    explained = np.einsum("nm,nm->m", cross, cho_solve(factor, cross))
    return mean, np.maximum(1 - explained, 0.0)
