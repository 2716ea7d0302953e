"""Losses of the markets networks (algorithms.md §5.1, §5.3): BPR, contrastive, KL, Frobenius.

Shapes: n items, width k, B triples. A is a market's symmetric 0/1 adjacency without self-loops. It is stored as undirected
edges, E × 2, each once. θ = (θ₁, θ₂).
"""

import torch
from torch import Tensor
from torch.nn.functional import relu, softplus
from torch.utils.checkpoint import checkpoint

BLOCK = 4096
"""Number of rows of A processed together."""

SMALLEST_SQUARE = 1e-12
"""Constant under the root of a distance; keeps the gradient finite at zero."""


def logits(theta: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Compute θ₁⟨z_a, z_b⟩ + θ₂ of paired rows, … × k and … × k -> … (Eq 1 before σ)."""
    return theta[0] * (left * right).sum(-1) + theta[1]


def bpr(positive: Tensor, negative: Tensor) -> Tensor:
    """Compute −mean log σ(r⁺ − r⁻) on raw logits (Eq 2).

    In the printed equation r is already a σ. A σ of a σ saturates, and the authors' code uses raw inner products too.
    """
    return softplus(negative - positive).mean()


def contrastive(anchor: Tensor, neighbor: Tensor, negative: Tensor, margin: float) -> Tensor:
    """Compute ½ mean [d(a, n)² + max(0, m − d(a, o))²] with the Euclidean distance d.

    Hadsell et al. 2006, Eq 4. The margin form is used instead of InfoNCE, because other pairs of a batch may be related items.
    For rows of norm 1, d² = 2 − 2⟨a, n⟩, and inner products give the same ranking. A triple whose negative equals its neighbor
    counts as 0.

    Args:
        anchor: Embeddings a, … × k.
        neighbor: Embeddings n, … × k.
        negative: Embeddings o, … × k.
        margin: Distance m.
    """
    near, far = (anchor - neighbor).square().sum(-1), (anchor - negative).square().sum(-1)
    pushed = relu(margin - (far + SMALLEST_SQUARE).sqrt()).square()
    is_valid = (neighbor != negative).any(-1)
    return 0.5 * torch.where(is_valid, near + pushed, 0.0).mean()


def divergence(mean: Tensor, log_variance: Tensor, prior_variance: Tensor) -> Tensor:
    """Compute KL(N(m, diag v) ‖ N(0, diag α)) per item: ½Σ[(v + m²)/α − 1 + ln α − ln v], n × k -> n."""
    ratio = (log_variance.exp() + mean.square()) / prior_variance
    return 0.5 * (ratio - 1 + prior_variance.log() - log_variance).sum(-1)


def frobenius(z: Tensor, theta: Tensor, edges: Tensor, block: int = BLOCK) -> Tensor:
    """Compute ‖A − E[A]‖_F² with E[A_ab] = σ(θ₁z_aᵀz_b + θ₂) (Eq 15), exactly, in blocks of rows.

    The sum runs over all n² entries as printed, including the diagonal: Σ E[A]² + Σ_{A=1}(1 − 2E[A]).
    """
    total = z.new_zeros(())
    for rows in torch.split(z, block):
        total = total + checkpoint(_squares, rows, z, theta, use_reentrant=False)
    return total + _on_edges(z, theta, edges)


def frobenius_sampled(z: Tensor, theta: Tensor, rows: Tensor, edges: Tensor, count: int) -> Tensor:
    """Estimate `frobenius` without bias from sampled rows of E[A] and sampled edges.

    Args:
        z: Embeddings, n × k.
        theta: Parameters θ, 2.
        rows: Indices of items drawn uniformly, R.
        edges: Edges drawn uniformly from all edges, Q × 2.
        count: Number E of all edges.
    """
    inner = _squares(z[rows], z, theta) * (len(z) / len(rows))
    return inner + _on_edges(z, theta, edges) * (count / len(edges))


def _squares(rows: Tensor, z: Tensor, theta: Tensor) -> Tensor:
    """Compute Σ E[A]² over some rows."""
    return torch.sigmoid(theta[0] * (rows @ z.T) + theta[1]).square().sum()


def _on_edges(z: Tensor, theta: Tensor, edges: Tensor) -> Tensor:
    """Compute Σ(1 − 2E[A]) over both directions of the edges."""
    expected = torch.sigmoid(logits(theta, z[edges[:, 0]], z[edges[:, 1]]))
    return 2 * (1 - 2 * expected).sum()
