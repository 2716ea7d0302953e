"""What the networks of the markets task minimise (algorithms.md §5.1, §5.3): BPR, Kullback-Leibler, Frobenius.

Shapes: n items, width k, B triples. A is a market's symmetric 0/1 adjacency without self-loops, given by its undirected
edges, E × 2, each once. θ = (θ₁, θ₂).
"""

import torch
from torch import Tensor
from torch.nn.functional import relu, softplus
from torch.utils.checkpoint import checkpoint

BLOCK = 4096
"""Rows of A at a time."""

SMALLEST_SQUARE = 1e-12
"""A distance of zero has no slope."""


def logits(theta: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """θ₁⟨z_a, z_b⟩ + θ₂ of paired rows, … × k and … × k -> … (Eq 1 before σ)."""
    return theta[0] * (left * right).sum(-1) + theta[1]


def bpr(positive: Tensor, negative: Tensor) -> Tensor:
    """−mean log σ(r⁺ − r⁻) on raw logits (Eq 2).

    As printed the r are σ-ed already; a σ of a σ saturates, and the authors' code takes raw inner products too.
    """
    return softplus(negative - positive).mean()


def contrastive(anchor: Tensor, neighbour: Tensor, other: Tensor, margin: float) -> Tensor:
    """½ mean [d(a, n)² + max(0, m − d(a, o))²], d the Euclidean distance (Hadsell et al. 2006, Eq 4).

    The margin form rather than InfoNCE, since a triple brings one neighbour and one item that surely is none, while the
    other pairs of a batch may well go together. Of rows of norm 1, d² = 2 − 2⟨a, n⟩, so that inner products rank as it does.
    A triple whose other is its neighbour again, rows … × k alike, says nothing and counts as 0.
    """
    near, apart = (anchor - neighbour).square().sum(-1), (anchor - other).square().sum(-1)
    pushed = relu(margin - (apart + SMALLEST_SQUARE).sqrt()).square()
    told = (neighbour != other).any(-1)
    return 0.5 * torch.where(told, near + pushed, 0.0).mean()


def divergence(mean: Tensor, log_variance: Tensor, prior_variance: Tensor) -> Tensor:
    """KL(N(m, diag v) ‖ N(0, diag α)) of each item: ½Σ[(v + m²)/α − 1 + ln α − ln v], n × k -> n."""
    ratio = (log_variance.exp() + mean.square()) / prior_variance
    return 0.5 * (ratio - 1 + prior_variance.log() - log_variance).sum(-1)


def frobenius(z: Tensor, theta: Tensor, edges: Tensor, block: int = BLOCK) -> Tensor:
    """‖A − E[A]‖_F² with E[A_ab] = σ(θ₁z_aᵀz_b + θ₂) (Eq 15), exact, holding `block` rows of E[A] at a time.

    Over all n² entries as printed, so the diagonal counts: Σ E[A]² + Σ_{A=1}(1 − 2E[A]).
    """
    total = z.new_zeros(())
    for rows in torch.split(z, block):
        total = total + checkpoint(_squares, rows, z, theta, use_reentrant=False)
    return total + _on_edges(z, theta, edges)


def frobenius_sampled(z: Tensor, theta: Tensor, rows: Tensor, edges: Tensor, count: int) -> Tensor:
    """`frobenius`, estimated without bias from some rows of E[A] and some edges.

    Args:
        z: n × k.
        theta: θ.
        rows: R items drawn uniformly.
        edges: Q × 2, drawn uniformly from all edges.
        count: E, the number of all edges.
    """
    inner = _squares(z[rows], z, theta) * (len(z) / len(rows))
    return inner + _on_edges(z, theta, edges) * (count / len(edges))


def _squares(rows: Tensor, z: Tensor, theta: Tensor) -> Tensor:
    """Σ E[A]² over some rows."""
    return torch.sigmoid(theta[0] * (rows @ z.T) + theta[1]).square().sum()


def _on_edges(z: Tensor, theta: Tensor, edges: Tensor) -> Tensor:
    """Σ(1 − 2E[A]) over both directions of the edges."""
    expected = torch.sigmoid(logits(theta, z[edges[:, 0]], z[edges[:, 1]]))
    return 2 * (1 - 2 * expected).sum()
