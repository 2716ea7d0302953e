"""The client side of PF-GNN and PF-GNN+ (algorithms.md §5.3, Algorithm 2); mirror of `server/strategies/pfgnn.py`.

θ_i, α_i and κ_i never leave this side. Markets differ in size and each step takes a whole one, so clients train one after
the other, not stacked.
"""

import logging
from collections.abc import Collection, Sequence
from typing import cast

import torch
from torch import Tensor

from client.stacked_tensors import Tensors, select
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.gradient_descent import Descent
from client.trainers.optimizers import Moments, build_step, clip
from client.trainers.pfgnn_centroids import centres
from client.trainers.pfgnn_objective import ENCODER, Draw, MarketTensors, Objective
from client.trainers.proximal import proximal, pulled
from client.trainers.spec import ClientMethod, Cohort, CohortResult
from client.training.participant import generator
from common.methods import pfgnn
from common.methods.pfgnn import PFGNN

log = logging.getLogger("fedloom.client")

COINCIDE = (
    "clusters coincide (condition %.0e): a wide ridge stood in, which blurs what tells them apart; set"
    " algorithm.pfgnn.clusters or algorithm.pfgnn.tau smaller"
)

OWN = ("theta", "alpha")
"""What step (a) of Algorithm 2 moves."""

SHARED = ("phi.mean", "phi.log_variance", "kappa")
"""What step (b) moves."""


class PFGNNTrainer(FedAvgTrainer):
    """From φ and a market's own θ, α, κ: n_r steps on Eq 15 and 16, then ξ_i = P_κ(Z_i)."""

    def __init__(self, options: PFGNN) -> None:
        super().__init__(options)
        self.pfgnn, self._step = options, build_step(options)

    def correct(self, gradient: Tensors, params: Tensors, start: Tensors, control: Tensors) -> Tensors:
        """∇L_i + 2λ_w(φ_i − φ): Eq 13 for the default scorer, which is all shared and descends like other models."""
        return pulled(gradient, params, start, 2 * self.pfgnn.lambda_w)

    def train_cohort(self, cohort: Cohort) -> CohortResult:
        """Train markets one after the other by Algorithm 2; a model without encoder descends like others."""
        if ENCODER not in cohort.start:
            return super().train_cohort(cohort)
        markets = [cast(MarketTensors, one.learner) for one in cohort.participants]  # the method trains markets only
        sources, fresh = [generator(one) for one in cohort.participants], [not head for head in cohort.heads]
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
        """Algorithm 2 on each of K clients.

        Args:
            markets: Their data.
            start: The server's φ and ξ, their own θ, α, κ; K × ….
            moments: Of the optimiser.
            generators: Their randomness.
            fresh: Whether a client has no θ, α, κ of its own yet.
            steps: n_r.
        """
        alone = []
        for k, (market, source, new) in enumerate(zip(markets, generators, fresh, strict=True)):
            objective, first = Objective(self.pfgnn, market), _part(start, k)
            known = Moments(moments.count[k : k + 1], _part(moments.first, k), _part(moments.second, k))
            alone.append(self._alone(objective, first, known, source, new, steps))
        return Descent(
            {n: torch.cat([one.params[n] for one in alone]) for n in start},
            Moments(
                torch.cat([one.moments.count for one in alone]),
                {n: torch.cat([one.moments.first[n] for one in alone]) for n in moments.first},
                {n: torch.cat([one.moments.second[n] for one in alone]) for n in moments.second},
            ),
            {},
            torch.cat([one.loss for one in alone]),
        )

    def _alone(
        self,
        objective: Objective,
        start: Tensors,
        moments: Moments,
        generator: torch.Generator,
        fresh: bool,
        steps: int,
    ) -> Descent:
        """One client. While nobody has sent a ξ, it fits alone (phase 1) and then summarises (phase 2); else phase 3."""
        fitting, centring = self._fits(start), fresh and "xi" in start and self.pfgnn.centres == "kmeans"
        params = start if fitting or not centring else self._centred(objective, start, start, generator)
        losses = []
        for _ in range(steps):
            draw = objective.draw(start["phi.mean"].shape[-1], generator)
            params, moments, loss = self._stepped(objective, params, start, moments, draw, fitting)
            losses.append(loss)
        if fitting and centring:
            params = self._centred(objective, params, start, generator)
        if "xi" in start:
            xi, unpooled = objective.summary(_row(params))
            params = {**params, "xi": xi.unsqueeze(0)}
            if unpooled.degenerate and (fresh or not objective.summary(_row(start))[1].degenerate):  # said once
                log.warning(COINCIDE, unpooled.condition)
        return Descent(params, moments, {}, losses[0].reshape(1))

    def _fits(self, start: Tensors) -> bool:
        return "xi" in start and not bool(start["xi"].any())

    def _centred(self, objective: Objective, params: Tensors, start: Tensors, generator: torch.Generator) -> Tensors:
        reference = start["kappa" if self._fits(start) else "xi"][0]
        kappa = centres(objective.mean(_row(params)), params["kappa"][0], reference, generator)
        return {**params, "kappa": kappa.unsqueeze(0)}

    def _stepped(
        self,
        objective: Objective,
        params: Tensors,
        start: Tensors,
        moments: Moments,
        draw: Draw,
        fitting: bool,
    ) -> tuple[Tensors, Moments, Tensor]:
        """(a) and (b) of Algorithm 2; the loss is Eq 15 before them. Phase 1 leaves clusters and pulls out."""
        leaves = {n: p.detach().requires_grad_() for n, p in _row(params).items() if n in {*OWN, *SHARED}}
        if fitting:
            leaves.pop("kappa")
        encoded = objective.encode(leaves, draw)
        inner = objective.inner(leaves, encoded, draw)

        params, own = self._moved(inner, leaves, OWN, params, moments)
        xi = start["xi"][0] if "xi" in start and not fitting else torch.zeros(0)
        outer = objective.outer({**leaves, **_row(select(params, OWN))}, encoded, draw, xi)
        params, shared = self._moved(outer, leaves, SHARED, params, moments)
        if not fitting:
            params = self._pulled(params, start)
        return params, _joined(moments, own, shared), inner.detach()

    def _moved(
        self, loss: Tensor, leaves: Tensors, names: Collection[str], params: Tensors, moments: Moments
    ) -> tuple[Tensors, Moments]:
        moving = [n for n in names if n in leaves]
        slopes = torch.autograd.grad(
            loss, [leaves[n] for n in moving], retain_graph=True, allow_unused=True, materialize_grads=True
        )
        direction = clip({n: g.unsqueeze(0) for n, g in zip(moving, slopes, strict=True)}, self.pfgnn.clip_norm)
        known = Moments(moments.count, select(moments.first, moving), select(moments.second, moving))
        moved, after = self._step(select(params, moving), direction, known)
        return {**params, **moved}, after

    def _pulled(self, params: Tensors, start: Tensors) -> Tensors:
        """λ_w‖φ − φ_i‖², and λ_s‖κ − κ_i‖² where κ is exchanged, in closed form."""
        strengths = {"phi.mean": self.pfgnn.lambda_w, "phi.log_variance": self.pfgnn.lambda_w}
        if self.pfgnn.exchange == "kappa" and "kappa" in params:
            strengths["kappa"] = self.pfgnn.lambda_s
        lr = self.pfgnn.lr
        return {**params, **{n: proximal(params[n], start[n], lr, s) for n, s in strengths.items()}}


def _row(params: Tensors) -> Tensors:
    """One client's parameters without the dimension of clients."""
    return {n: p[0] for n, p in params.items()}


def _part(stacked: Tensors, k: int) -> Tensors:
    return {n: t[k : k + 1] for n, t in stacked.items()}


def _joined(before: Moments, own: Moments, shared: Moments) -> Moments:
    """Moments of both steps; each made one, so the count grows by one."""
    first, second = {**before.first, **own.first, **shared.first}, {**before.second, **own.second, **shared.second}
    return Moments(shared.count, first, second)


METHOD = ClientMethod(pfgnn.METHOD, PFGNNTrainer)
