"""Eq 15 and 16 of PF-GNN+ on one market (algorithms.md §5.3), and the proximal step that solves the pull of φ.

Shapes: n items, width d, embedding k, c clusters, B triples. Every term is a mean over what it sums over, so that markets of
any size take the same rates; only ξ keeps the size that `summary` gives it.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from client.trainers.optimizers import Tensors
from common.algorithms.pfgnn import PFGNN
from common.models.market_losses import bpr, divergence, frobenius, frobenius_sampled, logits
from common.models.market_network import log_variances, prior_variances
from common.models.market_pooling import assignments, summarise, unpool


class Market(Protocol):
    """What a client's market gives the trainer."""

    features: Tensor
    """X, n × d."""

    propagated: Tensor
    """S^m X, n × d."""

    pairs: Tensor
    """Undirected edges of the training graph, E × 2, each once."""

    def triples(self, generator: torch.Generator) -> Tensor:
        """An item, a neighbour, an item that is none, B × 3; pairs drawn uniformly with replacement."""


@dataclass(frozen=True)
class Draw:
    """What one step draws."""

    triples: Tensor
    """B × 3."""
    epsilon: Tensor
    """Standard normal, n × k."""
    rows: Tensor
    """Rows of A, R; as many as there are stand for all."""


@dataclass(frozen=True)
class Encoded:
    """A market's items under (φ, κ)."""

    mean: Tensor
    """m, n × k."""
    log_variance: Tensor
    """ln v, n × k."""
    sample: Tensor
    """z = m + √v·ε, n × k."""
    xi: Tensor
    """P_κ(m), c × k; empty without clusters."""
    unpooled: Tensor
    """P_κ⁻¹(ξ), n × k; empty without clusters."""


class Objective:
    """ℓ_i and its parts, pure functions of parameters and a draw."""

    def __init__(self, options: PFGNN, market: Market) -> None:
        self.options, self.market = options, market
        self.items = len(market.propagated)

    def draw(self, embedding: int, generator: torch.Generator) -> Draw:
        """Triples, noise and rows of one step."""
        triples, count = self.market.triples(generator), self.options.rows
        epsilon = torch.randn(self.items, embedding, generator=generator)
        exact = self.items <= count
        rows = torch.arange(self.items) if exact else torch.randint(self.items, (count,), generator=generator)
        return Draw(triples, epsilon, rows)

    def encode(self, params: Tensors, draw: Draw) -> Encoded:
        """The whole market's items; q's reparametrised sample, and what the clusters make of its mean."""
        mean = self.mean(params)
        log_variance = log_variances(self.market.propagated, params["phi.log_variance"], self.options.start_variance)
        sample = mean + (log_variance / 2).exp() * draw.epsilon
        if "kappa" not in params:
            return Encoded(mean, log_variance, sample, mean.new_zeros(0), mean.new_zeros(0))
        c = assignments(mean, params["kappa"], self.options.tau)
        xi = summarise(c, mean, self.options.summary)
        return Encoded(mean, log_variance, sample, xi, unpool(c, xi, self.options.summary).embeddings)

    def mean(self, params: Tensors) -> Tensor:
        """m = S^m X W, n × k."""
        return self.market.propagated @ params["phi.mean"]

    def summary(self, params: Tensors) -> Tensor:
        """ξ = P_κ(m), c × k: of the mean, since a sample would only add noise to what is uploaded."""
        mean = self.mean(params)
        return summarise(assignments(mean, params["kappa"], self.options.tau), mean, self.options.summary)

    def fit(self, params: Tensors, encoded: Encoded, draw: Draw) -> Tensor:
        """−L_i (Eq 10): BPR on a sample of q stands for the likelihood; the mean divergence is weighted 1/n."""
        item, neighbour, other = (encoded.sample[draw.triples[:, column]] for column in range(3))
        error = bpr(logits(params["theta"], item, neighbour), logits(params["theta"], item, other))
        if self.options.divergence == 0:
            return error
        apart = divergence(encoded.mean, encoded.log_variance, self._prior(params, encoded)).mean()
        return error + self.options.divergence * apart / self.items

    def inner(self, params: Tensors, encoded: Encoded, draw: Draw) -> Tensor:
        """Eq 15: −L_i + ‖A − E[A | P_κ⁻¹(ξ)]‖²/n²."""
        fit = self.fit(params, encoded, draw)
        if not len(encoded.unpooled) or self.options.reconstruction == 0:
            return fit
        edges, z, theta = self.market.pairs, encoded.unpooled, params["theta"]
        if len(draw.rows) == self.items:
            error = frobenius(z, theta, edges)
        else:
            error = frobenius_sampled(z, theta, draw.rows, draw.triples[:, :2], len(edges))
        return fit + self.options.reconstruction * error / self.items**2

    def outer(self, params: Tensors, encoded: Encoded, draw: Draw, xi: Tensor) -> Tensor:
        """Eq 16 without the pull of φ, which `proximal` solves: ℓ_i + λ_s‖ξ − ξ_i‖², ξ_i a function of κ and φ."""
        loss = self.inner(params, encoded, draw)
        return loss + self.options.lambda_s * (encoded.xi - xi).square().sum() if len(xi) else loss

    def _prior(self, params: Tensors, encoded: Encoded) -> Tensor:
        if self.options.prior == "standard":
            return torch.ones_like(encoded.mean)
        return prior_variances(self.market.features, params["alpha"])


def proximal(stepped: Tensor, anchor: Tensor, lr: float, strength: float) -> Tensor:
    """(p − lr·g + 2·lr·λ·w)/(1 + 2·lr·λ) of p − lr·g: λ‖p − w‖² in closed form, stable at any λ (§5.4).

    An explicit step on it needs lr < 1/λ, which the paper's lr .1 with λ 1000 is not.
    """
    return (stepped + 2 * lr * strength * anchor) / (1 + 2 * lr * strength)
