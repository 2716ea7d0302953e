"""Clustering operator of PF-GNN+ and its inverse (Eq 11; algorithms.md §5.2): items <-> c clusters.

Shapes: n items, c clusters, width k. Z n × k, κ c × k, C n × c, ξ c × k.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Summary = Literal["sum", "centroid"]
"""`sum`: ξ = CᵀZ, which grows with the number of items; `centroid`: cluster means diag(Cᵀ1)⁻¹CᵀZ."""

RIDGE, WIDE_RIDGE = 1e-12, 1e-6
"""ε of CᵀC + εI as a share of tr/c, in double precision; the wide one (paper) if clusters coincide."""

LARGEST_CONDITION = 1e8
"""Condition number of CᵀC above which clusters coincide.

A pseudo-inverse would truncate them, but its gradient is wrong there: the truncated values are not exact zeros.
"""


@dataclass(frozen=True)
class Unpooled:
    """Unpooled embeddings Z̃ = (Cᵀ)⁺ξ and the condition of the inverse."""

    embeddings: Tensor
    """Z̃, n × k, of rank at most c."""
    condition: float
    """Condition number of CᵀC; infinite where it is singular."""

    @property
    def degenerate(self) -> bool:
        """True if clusters coincide and the wide ridge was used; CᵀZ̃ = ξ then holds up to their differences."""
        return self.condition > LARGEST_CONDITION


def assignments(z: Tensor, kappa: Tensor, tau: float) -> Tensor:
    """Compute C_ab ∝ (1 + ‖z_a − κ_b‖²/τ)^(−(τ+1)/2), n × c; each row sums to 1.

    The paper's rows sum to 1 over "n"; here a row runs over the c clusters. τ → ∞ gives exp(−‖z_a − κ_b‖²/2).
    """
    lengths = z.square().sum(1, keepdim=True) + kappa.square().sum(1)
    squares = torch.addmm(lengths, z, kappa.T, alpha=-2).clamp(min=0)
    return torch.softmax(-(tau + 1) / 2 * torch.log1p(squares / tau), dim=1)


def summarize(c: Tensor, z: Tensor, summary: Summary) -> Tensor:
    """Compute ξ of embeddings under assignments C, c × k."""
    total = c.T @ z
    return total if summary == "sum" else total / _mass(c).unsqueeze(1)


def unpool(c: Tensor, xi: Tensor, summary: Summary) -> Unpooled:
    """Compute Z̃ = (Cᵀ)⁺ξ = C(CᵀC)⁻¹ξ; for ξ = CᵀZ, the orthogonal projection P_C Z.

    Means of `centroid` are first converted to sums. The paper's (CCᵀ)⁻¹C inverts an n × n matrix of rank c; this is (CCᵀ)⁺C.
    """
    c64, total = c.double(), xi.double() if summary == "sum" else _mass(c).double().unsqueeze(1) * xi.double()
    gram = c64.T @ c64
    condition = _condition(gram.detach())
    share = RIDGE if condition <= LARGEST_CONDITION else WIDE_RIDGE
    ridge = share * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
    weights = torch.cholesky_solve(total, torch.linalg.cholesky(gram + ridge))
    return Unpooled(c @ weights.to(c.dtype), condition)


def _mass(c: Tensor) -> Tensor:
    """Compute Cᵀ1, the number of items of each cluster, c."""
    return c.sum(0).clamp(min=torch.finfo(c.dtype).tiny)


def _condition(gram: Tensor) -> float:
    values = torch.linalg.eigvalsh(gram)
    smallest, largest = float(values[0]), float(values[-1])
    return largest / smallest if smallest > 0 else float("inf")
