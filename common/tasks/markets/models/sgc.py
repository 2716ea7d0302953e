"""The paper's networks of the markets task: SGC, alone or as a variational encoder (algorithms.md §5.1–5.2).

Parameters carry the paper's letters. `phi` and `xi` are what PF-GNN+ shares; `theta`, `alpha` and `kappa` are each market's
own. Shapes: n items of a market, width d, embedding k, c clusters.
"""

from dataclasses import dataclass
from math import log

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

LARGEST_LOG_VARIANCE = 20.0
"""A standard deviation of e¹⁰ at most, as in the authors' code."""

SMALLEST_PRIOR_VARIANCE = 1e-4


@dataclass(frozen=True)
class Pooling:
    """What PF-GNN+ adds to the encoder."""

    clusters: int
    """c."""
    shares_summary: bool
    """Whether ξ is part of the model, or κ is exchanged in its place."""


class MarketNetwork(nn.Module):
    """Z = (S^m X)W, W = `phi.mean` (Eq 3); a variational encoder has a second one for ln v and a prior's W_α.

    Nothing is propagated here: a market's S^m X is computed once. The text's outer σ is left out, as in the authors' code.

    Args:
        width: d.
        embedding: k.
        variational: Whether the encoder gives a distribution q = N(m, diag v) (Eq 6).
        pooling: κ and ξ of PF-GNN+.
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
        """M of rows of S^m X, … × d -> … × k."""
        mean: Tensor = x @ self.phi["mean"]
        return mean


def log_variances(x: Tensor, weight: Tensor, start: float) -> Tensor:
    """Ln v = ln v₀ + x W_v of rows of S^m X, … × d -> … × k; v₀ (`start`) is 1 in the paper.

    W_v has no bias, and rows of X have norm 1 at most: from v₀ = 1 a sample's noise drowns its mean for a long time.
    """
    return (x @ weight + log(start)).clamp(max=LARGEST_LOG_VARIANCE)


def prior_variances(x: Tensor, weight: Tensor) -> Tensor:
    """α(X) = softplus(XW_α) + 1e-4 of rows of X, … × d -> … × k."""
    return softplus(x @ weight) + SMALLEST_PRIOR_VARIANCE


def _glorot(width: int, embedding: int) -> Tensor:
    return nn.init.xavier_uniform_(torch.empty(width, embedding))
