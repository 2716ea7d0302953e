"""Trainer of PF-GNN and PF-GNN+ (algorithms.md §5.3, Algorithm 2).

θ_i, α_i and κ_i stay on the client. Markets differ in size and each step uses a whole market, so participants train one
after the other, not stacked.
"""

import logging
from collections.abc import Collection, Sequence
from typing import cast

import torch
from torch import Tensor

from client.stacked_tensors import Tensors, select
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.gradient_descent import Descent
from client.trainers.optimizers import Moments, build_step, clip, copy
from client.trainers.pfgnn_centroids import initialize_centroids
from client.trainers.pfgnn_objective import ENCODER, HasTriples, MarketObjective, MarketTensors, StepDraw
from client.trainers.proximal import add_pull, apply_proximal
from client.trainers.spec import ClientMethod, Cohort, CohortResult
from client.training.participant import build_generator
from common.methods import pfgnn
from common.methods.pfgnn import PFGNN

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
            objective, first = MarketObjective(self.pfgnn, market), _slice(start, k)
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
        kappa = initialize_centroids(objective.mean(_first(params)), params["kappa"][0], reference, generator)
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
