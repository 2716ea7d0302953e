"""Trainer of PF-GNN and PF-GNN+ (algorithms.md §5.3, Algorithm 2)."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import kmeans_plusplus
from torch import Tensor

from client.trainers.base import ClientMethod, Cohort, CohortResult
from client.trainers.fedavg import FedAvgTrainer
from client.training.participant import build_generator
from client.training.stacks import Tensors, device_of, move, new_tensors_on, select
from client.training.steps import Descent, Moments, add_pull, apply_proximal, build_step, clip, copy
from common.methods import pfgnn
from common.methods.pfgnn import PFGNN
from common.tasks.markets.losses import bpr, divergence, frobenius, frobenius_sampled
from common.tasks.markets.model import Unpooled, assignments, log_variances, prior_variances, summarize, unpool


def initialize_centroids(z: Tensor, start: Tensor, reference: Tensor, generator: torch.Generator) -> Tensor:
    """Return the initial centroids κ, c × k.

    The mean of summaries is meaningful only if a cluster's number has the same meaning in every market. The centroids are
    therefore matched one to one to the rows of `reference`, by cosine similarity.

    Args:
        z: Embeddings Z of the market's items, n × k.
        start: Centroids of the server, c × k; they remain for clusters beyond the number of distinct items.
        reference: Summary ξ if there is one, else the server's centroids, c × k.
        generator: Generator of the seed of k-means++.
    """
    items = np.unique(z.numpy(), axis=0)
    seed = int(torch.randint(2**31 - 1, (), generator=generator))
    centroids, _ = kmeans_plusplus(items, min(len(start), len(items)), random_state=seed)
    rows, numbers = linear_sum_assignment(_unit(centroids) @ _unit(reference.numpy()).T, maximize=True)
    kappa = start.clone()
    kappa[torch.from_numpy(numbers)] = torch.from_numpy(centroids[rows]).to(start.dtype)
    return kappa


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths: np.ndarray = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: np.ndarray = rows / np.maximum(lengths, np.finfo(rows.dtype).tiny)
    return unit


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

    def __init__(self, options: PFGNN, market: MarketTensors, device: str | torch.device = "cpu") -> None:
        self.options, self.market, self.device = options, market, device
        self.propagated, self.features, self.pairs = move((market.propagated, market.features, market.pairs), device)
        self.items = len(market.propagated)
        self.exact = options.rows == 0 or self.items <= options.rows

    def draw(self, embedding: int, generator: torch.Generator) -> StepDraw:
        """Sample the random inputs of one step; the embedding has width `embedding`."""
        triples, epsilon = self.market.triples(generator), torch.randn(self.items, embedding, generator=generator)
        if self.exact:
            return move(StepDraw(triples, epsilon, torch.arange(self.items), torch.arange(self.items)), self.device)
        rows = torch.randint(self.items, (self.options.rows,), generator=generator)
        return move(StepDraw(triples, epsilon, rows, self._seen(torch.cat([triples.flatten(), rows]))), self.device)

    def _seen(self, items: Tensor) -> Tensor:
        """Return the distinct items, ascending; all items if at least half occur, to save the indexing."""
        mask = torch.zeros(self.items, dtype=torch.bool)
        mask[items] = True
        seen = mask.nonzero().flatten()
        return seen if 2 * len(seen) < self.items else torch.arange(self.items)

    def encode(self, params: Tensors, draw: StepDraw) -> Encoding:
        """Return a reparametrized sample of q for the items `seen`, and the summary of the mean of all items."""
        clustered, all_seen = "kappa" in params, len(draw.seen) == self.items
        x = self.propagated if all_seen else self.propagated[draw.seen]
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
        return self.propagated @ params["phi.mean"]

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
            prior = prior_variances(self.features[draw.rows], params["alpha"])
        return error + self.options.divergence * divergence(mean, log_variance, prior).mean() / self.items

    def inner(self, params: Tensors, encoded: Encoding, draw: StepDraw) -> Tensor:
        """Return Eq 15: −L_i + ‖A − E[A | P_κ⁻¹(ξ)]‖²/n²."""
        fit = self.fit(params, encoded, draw)
        if not len(encoded.unpooled) or self.options.reconstruction == 0:
            return fit
        edges, z, theta = self.pairs, encoded.unpooled, params["theta"]
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


log = logging.getLogger("fedloom.client")

COINCIDENCE_WARNING = (
    "clusters coincide (condition %.0e) and are separated by a wide ridge only; lower algorithm.pfgnn.clusters or"
    " algorithm.pfgnn.tau"
)

PRIVATE = ("theta", "alpha")
"""Parameters that step (a) of Algorithm 2 updates."""

SHARED = ("phi.mean", "phi.log_variance", "kappa")
"""Parameters that step (b) of Algorithm 2 updates."""


class PFGNNTrainer(FedAvgTrainer):
    """Trainer with n_r steps on Eq 15 and 16 from φ and the market's θ, α, κ; then ξ_i = P_κ(Z_i)."""

    def __init__(self, options: PFGNN) -> None:
        super().__init__(options)
        self.pfgnn, self._step = options, build_step(options)

    def correct(self, gradient: Tensors, params: Tensors, start: Tensors, control: Tensors) -> Tensors:
        """Return ∇L_i + 2λ_w(φ_i − φ): Eq 13 for the default scorer, whose parameters are all shared."""
        return add_pull(gradient, params, start, 2 * self.pfgnn.lambda_w)

    def train_cohort(self, cohort: Cohort) -> CohortResult:
        """Train markets one after the other by Algorithm 2; a model without encoder by plain local descent."""
        if ENCODER not in cohort.start:
            return super().train_cohort(cohort)
        markets = [
            cast(HasTriples, p.learner).triple_source for p in cohort.participants
        ]  # the method trains markets only
        sources, fresh = [build_generator(p) for p in cohort.participants], [not head for head in cohort.heads]
        descent = self.train(markets, cohort.start, cohort.moments, sources, fresh, cohort.participants[0].steps)
        return CohortResult(descent, descent.params)

    def train(
        self,
        markets: Sequence[MarketTensors],
        start: Tensors,
        moments: Moments,
        generators: Sequence[torch.Generator],
        fresh: Sequence[bool],
        steps: int,
    ) -> Descent:
        """Train K markets by Algorithm 2.

        Args:
            markets: Data of each market.
            start: φ and ξ of the server, θ, α, κ of each market; K × ….
            moments: Moments of the optimizer.
            generators: Random generator of each market.
            fresh: True for a market without θ, α, κ of its own.
            steps: Number n_r of steps.
        """
        results = []
        for k, (market, source, is_fresh) in enumerate(zip(markets, generators, fresh, strict=True)):
            objective, first = MarketObjective(self.pfgnn, market, device_of(start)), _slice(start, k)
            before = Moments(moments.count[k : k + 1], _slice(moments.first, k), _slice(moments.second, k))
            results.append(self._train_market(objective, first, before, source, is_fresh, steps))
        return Descent(
            {n: torch.cat([r.params[n] for r in results]) for n in start},
            Moments(
                torch.cat([r.moments.count for r in results]),
                {n: torch.cat([r.moments.first[n] for r in results]) for n in moments.first},
                {n: torch.cat([r.moments.second[n] for r in results]) for n in moments.second},
            ),
            {},
            torch.cat([r.loss for r in results]),
        )

    def _train_market(
        self,
        objective: MarketObjective,
        start: Tensors,
        moments: Moments,
        generator: torch.Generator,
        fresh: bool,
        steps: int,
    ) -> Descent:
        """Train one market: without a ξ of the server, phases 1 (fit) and 2 (summary); else phase 3."""
        fits, initializes = self._fits_alone(start), fresh and "xi" in start and self.pfgnn.centres == "kmeans"
        params = start if fits or not initializes else self._initialize_kappa(objective, start, start, generator)
        losses = []
        for _ in range(steps):
            draw = objective.draw(start["phi.mean"].shape[-1], generator)
            with new_tensors_on(device_of(start)):
                params, moments, loss = self._make_step(objective, params, start, moments, draw, fits)
            losses.append(loss)
        if fits and initializes:
            params = self._initialize_kappa(objective, params, start, generator)
        if "xi" in start:
            xi, unpooled = objective.summary(_first(params))
            params = {**params, "xi": xi.unsqueeze(0)}
            if unpooled.degenerate and (fresh or not objective.summary(_first(start))[1].degenerate):  # once per market
                log.warning(COINCIDENCE_WARNING, unpooled.condition)
        return Descent(params, moments, {}, losses[0].reshape(1))

    def _fits_alone(self, start: Tensors) -> bool:
        return "xi" in start and not bool(start["xi"].any())

    def _initialize_kappa(
        self, objective: MarketObjective, params: Tensors, start: Tensors, generator: torch.Generator
    ) -> Tensors:
        reference = start["kappa" if self._fits_alone(start) else "xi"][0]
        host = move((objective.mean(_first(params)), params["kappa"][0], reference), "cpu")
        kappa = move(initialize_centroids(*host, generator), device_of(params))
        return {**params, "kappa": kappa.unsqueeze(0)}

    def _make_step(
        self, objective: MarketObjective, params: Tensors, start: Tensors, moments: Moments, draw: StepDraw, fits: bool
    ) -> tuple[Tensors, Moments, Tensor]:
        """Make steps (a) and (b) of Algorithm 2; return the loss Eq 15 before them.

        Phase 1 (`fits`) omits clusters and proximal terms.
        """
        leaves = {n: p.detach().requires_grad_() for n, p in _first(params).items() if n in {*PRIVATE, *SHARED}}
        if fits:
            leaves.pop("kappa")
        encoded = objective.encode(leaves, draw)
        inner = objective.inner(leaves, encoded, draw)

        params, private = self._descend(inner, leaves, PRIVATE, params, moments)
        xi = start["xi"][0] if "xi" in start and not fits else torch.zeros(0)
        outer = objective.outer({**leaves, **_first(select(params, PRIVATE))}, encoded, draw, xi)
        params, shared = self._descend(outer, leaves, SHARED, params, moments)
        if not fits:
            params = self._apply_pulls(params, start)
        return params, _join_moments(moments, private, shared), inner.detach()

    def _descend(
        self, loss: Tensor, leaves: Tensors, names: Collection[str], params: Tensors, moments: Moments
    ) -> tuple[Tensors, Moments]:
        moving = [n for n in names if n in leaves]
        gradients = torch.autograd.grad(
            loss, [leaves[n] for n in moving], retain_graph=True, allow_unused=True, materialize_grads=True
        )
        direction = clip({n: g.unsqueeze(0) for n, g in zip(moving, gradients, strict=True)}, self.pfgnn.clip_norm)
        moved = copy(select(params, moving))
        after = Moments(moments.count, select(moments.first, moving), select(moments.second, moving)).copy()
        self._step(moved, direction, after)
        return {**params, **moved}, after

    def _apply_pulls(self, params: Tensors, start: Tensors) -> Tensors:
        """Apply λ_w‖φ − φ_i‖², and λ_s‖κ − κ_i‖² if κ is exchanged, in closed form."""
        strengths = {"phi.mean": self.pfgnn.lambda_w, "phi.log_variance": self.pfgnn.lambda_w}
        if self.pfgnn.exchange == "kappa" and "kappa" in params:
            strengths["kappa"] = self.pfgnn.lambda_s
        lr = self.pfgnn.lr
        return {**params, **{n: apply_proximal(params[n], start[n], lr, s) for n, s in strengths.items()}}


def _first(params: Tensors) -> Tensors:
    """Return one client's parameters without the client dimension."""
    return {n: p[0] for n, p in params.items()}


def _slice(stacked: Tensors, k: int) -> Tensors:
    return {n: t[k : k + 1] for n, t in stacked.items()}


def _join_moments(before: Moments, private: Moments, shared: Moments) -> Moments:
    """Return the moments of both steps; the count increases by one."""
    first = {**before.first, **private.first, **shared.first}
    second = {**before.second, **private.second, **shared.second}
    return Moments(shared.count, first, second)


METHOD = ClientMethod(pfgnn.METHOD, PFGNNTrainer)
