"""SGC network of the markets task, plain or as a variational encoder (algorithms.md §5.1–5.2).

Parameters have the paper's letters. PF-GNN+ shares `phi` and `xi`; `theta`, `alpha` and `kappa` are private to a market.
Shapes: n items of a market, width d, embedding k, c clusters.
"""

from dataclasses import dataclass
from math import log

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

LARGEST_LOG_VARIANCE = 20.0
"""Maximum of ln v, a standard deviation of e¹⁰, as in the authors' code."""

SMALLEST_PRIOR_VARIANCE = 1e-4
"""Minimum of the prior variance α(X)."""


@dataclass(frozen=True)
class Pooling:
    """Options of the clustering operator of PF-GNN+."""

    clusters: int
    """Number c of clusters."""
    shares_summary: bool
    """True if ξ is a parameter of the model; False if κ is exchanged instead."""


class MarketNetwork(nn.Module):
    """SGC network Z = (S^m X)W with W = `phi.mean` (Eq 3).

    A variational encoder has a second W for ln v and the prior's W_α. The input is S^m X, computed once per market. The paper's
    outer σ is left out, as in the authors' code.

    Args:
        width: Width d of the features.
        embedding: Width k of the embedding.
        variational: True if the encoder gives a distribution q = N(m, diag v) (Eq 6).
        pooling: Options for κ and ξ of PF-GNN+; None without them.
    """

    def __init__(self, width: int, embedding: int, *, variational: bool, pooling: Pooling | None = None) -> None:
        super().__init__()
        encoders = ("mean", "log_variance") if variational else ("mean",)
        self.phi = nn.ParameterDict({name: nn.Parameter(_glorot(width, embedding)) for name in encoders})
        self.theta = nn.Parameter(torch.tensor([1.0, 0.0]))
        self.alpha = nn.Parameter(torch.zeros(width, embedding)) if variational else None
        self.kappa = nn.Parameter(2 * torch.rand(pooling.clusters, embedding) - 1) if pooling else None
        summary = pooling is not None and pooling.shares_summary
        self.xi = nn.Parameter(torch.zeros(pooling.clusters, embedding)) if pooling and summary else None

    def forward(self, x: Tensor) -> Tensor:
        """Compute the means m of rows of S^m X, … × d -> … × k."""
        mean: Tensor = x @ self.phi["mean"]
        return mean


def log_variances(x: Tensor, weight: Tensor, start: float) -> Tensor:
    """Compute ln v = ln v₀ + x W_v of rows of S^m X, … × d -> … × k; v₀ (`start`) is 1 in the paper.

    W_v has no bias and rows of X have norm at most 1. With v₀ = 1 the sampling variance exceeds the mean for many rounds.
    """
    return (x @ weight + log(start)).clamp(max=LARGEST_LOG_VARIANCE)


def prior_variances(x: Tensor, weight: Tensor) -> Tensor:
    """Compute α(X) = softplus(XW_α) + 1e-4 of rows of X, … × d -> … × k."""
    return softplus(x @ weight) + SMALLEST_PRIOR_VARIANCE


def _glorot(width: int, embedding: int) -> Tensor:
    return nn.init.xavier_uniform_(torch.empty(width, embedding))
