"""Eq 15 and 16 of PF-GNN+ on one market (algorithms.md §5.3).

Shapes: n items, width d, embedding k, c clusters, B triples. Every term is a mean over what it sums over, so that markets of
any size take the same rates. ‖A − E[A]‖² and, where ξ is a sum over items, ‖ξ − ξ_i‖² grow with n²: both are divided by it,
which leaves them the weights that the paper gives them beside each other.
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
"""The parameter that tells the paper's network from the default scorer, which has no encoder."""

EDGES = 4096
"""Edges of a step's triples on which E[A] is looked at, at most."""


class MarketTensors(Protocol):
    """What a client's market gives the trainer."""

    @property
    def features(self) -> Tensor:
        """X, n × d."""

    @property
    def propagated(self) -> Tensor:
        """S^m X, n × d."""

    @property
    def pairs(self) -> Tensor:
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
    """Items that stand for all, R."""
    seen: Tensor
    """Items whose distribution the step takes, among them those of triples and rows, ascending, S."""

    def places(self, items: Tensor) -> Tensor:
        """Where in `seen` some of those items stand, of the same shape."""
        return torch.searchsorted(self.seen, items)


@dataclass(frozen=True)
class Encoded:
    """A market's items under (φ, κ); of the distribution only those that a step sees."""

    mean: Tensor
    """m, S × k."""
    log_variance: Tensor
    """ln v, S × k."""
    likes: Tensor
    """⟨z_a, z_b⟩ of each triple's item with its neighbour and with the other, B × 2, of z = m + √v·ε."""
    xi: Tensor
    """P_κ(m), c × k; empty without clusters."""
    unpooled: Tensor
    """P_κ⁻¹(ξ), n × k; empty without clusters."""


class Objective:
    """ℓ_i and its parts, pure functions of parameters and a draw."""

    def __init__(self, options: PFGNN, market: MarketTensors) -> None:
        self.options, self.market = options, market
        self.items = len(market.propagated)
        self.exact = options.rows == 0 or self.items <= options.rows

    def draw(self, embedding: int, generator: torch.Generator) -> Draw:
        """Triples, noise and rows of one step."""
        triples, epsilon = self.market.triples(generator), torch.randn(self.items, embedding, generator=generator)
        if self.exact:
            return Draw(triples, epsilon, torch.arange(self.items), torch.arange(self.items))
        rows = torch.randint(self.items, (self.options.rows,), generator=generator)
        return Draw(triples, epsilon, rows, self._seen(torch.cat([triples.flatten(), rows])))

    def _seen(self, items: Tensor) -> Tensor:
        """Those items, each once, in order; all of the market's where they are most of it, since picking costs time too."""
        named = torch.zeros(self.items, dtype=torch.bool)
        named[items] = True
        seen = named.nonzero().flatten()
        return seen if 2 * len(seen) < self.items else torch.arange(self.items)

    def encode(self, params: Tensors, draw: Draw) -> Encoded:
        """Q's reparametrised sample of the items seen, and what the clusters make of the mean of all the market's items."""
        clustered, all_seen = "kappa" in params, len(draw.seen) == self.items
        x = self.market.propagated if all_seen else self.market.propagated[draw.seen]
        every = self.mean(params) if clustered or all_seen else x @ params["phi.mean"]
        mean = every[draw.seen] if len(every) > len(draw.seen) else every
        log_variance = log_variances(x, params["phi.log_variance"], self.options.start_variance)
        sample = torch.addcmul(mean, (log_variance / 2).exp(), draw.epsilon[draw.seen])
        item, *others = (sample[places] for places in draw.places(draw.triples).unbind(1))
        likes = torch.stack([(item * other).sum(-1) for other in others], dim=1)
        if not clustered:
            return Encoded(mean, log_variance, likes, mean.new_zeros(0), mean.new_zeros(0))
        c = assignments(every, params["kappa"], self.options.tau)
        xi = summarize(c, every, self.options.summary)
        return Encoded(mean, log_variance, likes, xi, unpool(c, xi, self.options.summary).embeddings)

    def mean(self, params: Tensors) -> Tensor:
        """M = S^m X W, n × k."""
        return self.market.propagated @ params["phi.mean"]

    def summary(self, params: Tensors) -> tuple[Tensor, Unpooled]:
        """ξ = P_κ(m), c × k, of the mean, since a sample would only add noise to what is uploaded; and what it says of Z."""
        mean = self.mean(params)
        c = assignments(mean, params["kappa"], self.options.tau)
        xi = summarize(c, mean, self.options.summary)
        return xi, unpool(c, xi, self.options.summary)

    def fit(self, params: Tensors, encoded: Encoded, draw: Draw) -> Tensor:
        """−L_i (Eq 10): BPR on a sample of q stands for the likelihood; the mean divergence is weighted 1/n.

        θ₂ cancels out of BPR and is left out, or Adam would follow its rounding errors.
        """
        error = bpr(*(params["theta"][0] * encoded.likes).unbind(1))
        if self.options.divergence == 0:
            return error
        places = draw.places(draw.rows)
        mean, log_variance = encoded.mean[places], encoded.log_variance[places]
        prior = torch.ones_like(mean)
        if self.options.prior == "learnable":
            prior = prior_variances(self.market.features[draw.rows], params["alpha"])
        return error + self.options.divergence * divergence(mean, log_variance, prior).mean() / self.items

    def inner(self, params: Tensors, encoded: Encoded, draw: Draw) -> Tensor:
        """Eq 15: −L_i + ‖A − E[A | P_κ⁻¹(ξ)]‖²/n²."""
        fit = self.fit(params, encoded, draw)
        if not len(encoded.unpooled) or self.options.reconstruction == 0:
            return fit
        edges, z, theta = self.market.pairs, encoded.unpooled, params["theta"]
        if self.exact:
            error = frobenius(z, theta, edges)
        else:
            error = frobenius_sampled(z, theta, draw.rows, draw.triples[:EDGES, :2], len(edges))
        return fit + self.options.reconstruction * error / self.items**2

    def outer(self, params: Tensors, encoded: Encoded, draw: Draw, xi: Tensor) -> Tensor:
        """Eq 16 without the pull of φ, which `proximal` solves: ℓ_i + λ_s‖ξ − ξ_i‖²/n², ξ_i a function of κ and φ.

        Nothing is divided by n² where ξ is of means.
        """
        loss = self.inner(params, encoded, draw)
        if not len(xi):
            return loss
        size = self.items if self.options.summary == "sum" else 1
        return loss + self.options.lambda_s * ((encoded.xi - xi) / size).square().sum()
