"""Objective of PF-GNN+ on one market, Eq 15 and 16 (algorithms.md §5.3).

Shapes: n items, feature width d, embedding width k, c clusters, B BPR triples. Every term is a mean, so markets of any size
have the same learning rates. ‖A − E[A]‖² and, if ξ is a sum over items, ‖ξ − ξ_i‖² grow with n². Both are divided by n², which
keeps the paper's ratio of their weights.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from client.stacked_tensors import Tensors
from common.methods.pfgnn import PFGNN
from common.tasks.markets.models.cluster_pool import Unpooled, assignments, summarize, unpool
from common.tasks.markets.models.losses import bpr, divergence, frobenius, frobenius_sampled
from common.tasks.markets.models.sgc import log_variances, prior_variances

ENCODER = "phi.mean"
"""Parameter that only the paper's network has; the default scorer has no encoder."""

EDGES = 4096
"""Maximum number of a step's edges on which E[A] is evaluated."""


class MarketTensors(Protocol):
    """Tensors of a client's market."""

    @property
    def features(self) -> Tensor:
        """Item features X, n × d."""

    @property
    def propagated(self) -> Tensor:
        """Propagated features S^m X, n × d."""

    @property
    def pairs(self) -> Tensor:
        """Undirected edges of the training graph, each once, E × 2."""

    def triples(self, generator: torch.Generator) -> Tensor:
        """Sample BPR triples (item, neighbor, negative sample), B × 3; pairs uniformly with replacement."""


class HasTriples(Protocol):
    """Learner of markets under the paper's network."""

    @property
    def triple_source(self) -> MarketTensors:
        """Tensors of all markets of the client."""


@dataclass(frozen=True)
class StepDraw:
    """Random inputs of one step."""

    triples: Tensor
    """BPR triples, B × 3."""
    epsilon: Tensor
    """Standard normal numbers, n × k."""
    rows: Tensor
    """Items that estimate the means over all items, (R,)."""
    seen: Tensor
    """Items whose distribution the step computes, with those of triples and rows, ascending, (S,)."""

    def places(self, items: Tensor) -> Tensor:
        """Return the positions of items in `seen`, in the shape of `items`."""
        return torch.searchsorted(self.seen, items)


@dataclass(frozen=True)
class Encoding:
    """Encoding of a market's items under (φ, κ); the distribution covers the items `seen` only."""

    mean: Tensor
    """Mean m, S × k."""
    log_variance: Tensor
    """Log variance ln v, S × k."""
    products: Tensor
    """⟨z_a, z_b⟩ of each triple's item with its neighbor and its negative sample, B × 2; z = m + √v·ε."""
    xi: Tensor
    """Summary P_κ(m), c × k; empty without clusters."""
    unpooled: Tensor
    """Unpooled embeddings P_κ⁻¹(ξ), n × k; empty without clusters."""


class MarketObjective:
    """Objective ℓ_i and its parts, as pure functions of parameters and random inputs."""

    def __init__(self, options: PFGNN, market: MarketTensors) -> None:
        self.options, self.market = options, market
        self.items = len(market.propagated)
        self.exact = options.rows == 0 or self.items <= options.rows

    def draw(self, embedding: int, generator: torch.Generator) -> StepDraw:
        """Sample the random inputs of one step; the embedding has width `embedding`."""
        triples, epsilon = self.market.triples(generator), torch.randn(self.items, embedding, generator=generator)
        if self.exact:
            return StepDraw(triples, epsilon, torch.arange(self.items), torch.arange(self.items))
        rows = torch.randint(self.items, (self.options.rows,), generator=generator)
        return StepDraw(triples, epsilon, rows, self._seen(torch.cat([triples.flatten(), rows])))

    def _seen(self, items: Tensor) -> Tensor:
        """Return the distinct items, ascending; all items if at least half occur, to save the indexing."""
        mask = torch.zeros(self.items, dtype=torch.bool)
        mask[items] = True
        seen = mask.nonzero().flatten()
        return seen if 2 * len(seen) < self.items else torch.arange(self.items)

    def encode(self, params: Tensors, draw: StepDraw) -> Encoding:
        """Return a reparametrized sample of q for the items `seen`, and the summary of the mean of all items."""
        clustered, all_seen = "kappa" in params, len(draw.seen) == self.items
        x = self.market.propagated if all_seen else self.market.propagated[draw.seen]
        every = self.mean(params) if clustered or all_seen else x @ params["phi.mean"]
        mean = every[draw.seen] if len(every) > len(draw.seen) else every
        log_variance = log_variances(x, params["phi.log_variance"], self.options.start_variance)
        sample = torch.addcmul(mean, (log_variance / 2).exp(), draw.epsilon[draw.seen])
        item, *partners = (sample[places] for places in draw.places(draw.triples).unbind(1))
        products = torch.stack([(item * partner).sum(-1) for partner in partners], dim=1)
        if not clustered:
            return Encoding(mean, log_variance, products, mean.new_zeros(0), mean.new_zeros(0))
        c = assignments(every, params["kappa"], self.options.tau)
        xi = summarize(c, every, self.options.summary)
        return Encoding(mean, log_variance, products, xi, unpool(c, xi, self.options.summary).embeddings)

    def mean(self, params: Tensors) -> Tensor:
        """Return M = S^m X W, n × k."""
        return self.market.propagated @ params["phi.mean"]

    def summary(self, params: Tensors) -> tuple[Tensor, Unpooled]:
        """Return ξ = P_κ(m) of the mean, c × k, and its unpooled embeddings; a sample would add variance."""
        mean = self.mean(params)
        c = assignments(mean, params["kappa"], self.options.tau)
        xi = summarize(c, mean, self.options.summary)
        return xi, unpool(c, xi, self.options.summary)

    def fit(self, params: Tensors, encoded: Encoding, draw: StepDraw) -> Tensor:
        """Return −L_i (Eq 10), with BPR on a sample of q as likelihood and the mean divergence weighted 1/n.

        θ₂ cancels out of BPR. It is left out, because Adam would amplify its rounding errors.
        """
        error = bpr(*(params["theta"][0] * encoded.products).unbind(1))
        if self.options.divergence == 0:
            return error
        places = draw.places(draw.rows)
        mean, log_variance = encoded.mean[places], encoded.log_variance[places]
        prior = torch.ones_like(mean)
        if self.options.prior == "learnable":
            prior = prior_variances(self.market.features[draw.rows], params["alpha"])
        return error + self.options.divergence * divergence(mean, log_variance, prior).mean() / self.items

    def inner(self, params: Tensors, encoded: Encoding, draw: StepDraw) -> Tensor:
        """Return Eq 15: −L_i + ‖A − E[A | P_κ⁻¹(ξ)]‖²/n²."""
        fit = self.fit(params, encoded, draw)
        if not len(encoded.unpooled) or self.options.reconstruction == 0:
            return fit
        edges, z, theta = self.market.pairs, encoded.unpooled, params["theta"]
        if self.exact:
            error = frobenius(z, theta, edges)
        else:
            error = frobenius_sampled(z, theta, draw.rows, draw.triples[:EDGES, :2], len(edges))
        return fit + self.options.reconstruction * error / self.items**2

    def outer(self, params: Tensors, encoded: Encoding, draw: StepDraw, xi: Tensor) -> Tensor:
        """Return Eq 16 without the proximal term of φ: ℓ_i + λ_s‖ξ − ξ_i‖²/n², where ξ_i depends on κ and φ.

        `apply_proximal` solves the term of φ. If ξ is the clusters' means, the factor 1/n² is omitted.
        """
        loss = self.inner(params, encoded, draw)
        if not len(xi):
            return loss
        size = self.items if self.options.summary == "sum" else 1
        return loss + self.options.lambda_s * ((encoded.xi - xi) / size).square().sum()
