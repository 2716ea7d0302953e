"""BGTplanner's predictor: a Gaussian process with time decay (algorithms.md §4.3, Eq 4 and 5)."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from common.arrays import Floats

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
