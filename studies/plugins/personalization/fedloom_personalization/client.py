"""Trainers of pFedMe (Dinh et al. 2020) and of Per-FedAvg (Fallah et al. 2020), each Algorithm 1."""

from torch import Tensor

from client.api import (
    ClientMemory,
    ClientMethod,
    FedAvgTrainer,
    GradientAndLoss,
    Participant,
    Tensors,
    adapt_model,
)
from fedloom_personalization import options as specs


class PFedMeTrainer(FedAvgTrainer):
    """Trainer with descent of θ_i from w on L_i(θ) + λ/2‖θ − w‖²; it sends w − w_i = ηλ(w − θ_i)."""

    def __init__(self, options: specs.PFedMe) -> None:
        super().__init__(options)
        self.lam, self.rate = options.lam, options.envelope_lr * options.lam

    def correct(self, gradient: Tensors, params: Tensors, start: Tensors, control: Tensors) -> Tensors:
        """Return ∇L_i(θ) + λ(θ − w)."""
        return {n: g + self.lam * (params[n] - start[n]) for n, g in gradient.items()}

    def upload(self, displacement: Tensors) -> Tensors:
        """Return ηλ(w − θ_i), the gradient step on the Moreau envelope."""
        return {n: self.rate * d for n, d in displacement.items()}


class PerFedAvgTrainer(FedAvgTrainer):
    """Trainer with descent along ∇F_k; the personalized model is adapted from the shared one."""

    def __init__(self, options: specs.PerFedAvg) -> None:
        super().__init__(options)
        self.alpha, self.delta = options.alpha, options.delta
        self.first_order = options.variant == "first-order"
        self.samples_per_step = 2 if self.first_order else 3

    def objective(self, plain: GradientAndLoss) -> GradientAndLoss:
        """Return ∇F_k(w) = (I − α∇²L_k(w; D″)) ∇L_k(w − α∇L_k(w; D); D′) with L_k(w), from ∇L_k."""

        def meta(params: Tensors, batch: Tensors, inputs: Tensors) -> tuple[Tensors, Tensor]:
            first, value = plain(params, batch, _sample_of(inputs, 0))
            g, _ = plain(_add_scaled(params, first, -self.alpha), batch, _sample_of(inputs, 1))
            if self.first_order:
                return g, value
            ahead, _ = plain(_add_scaled(params, g, self.delta), batch, _sample_of(inputs, 2))
            behind, _ = plain(_add_scaled(params, g, -self.delta), batch, _sample_of(inputs, 2))
            curved = {n: (ahead[n] - behind[n]) / (2 * self.delta) for n in g}
            return _add_scaled(g, curved, -self.alpha), value

        return meta

    def personalize(self, participant: Participant) -> ClientMemory:
        """Return the client state with a model adapted by the participant's steps w ← w − α∇L_k(w)."""
        return adapt_model(participant, self.options, self.alpha)


def _add_scaled(tensors: Tensors, direction: Tensors, size: float) -> Tensors:
    return {n: t + size * direction[n] for n, t in tensors.items()}


def _sample_of(inputs: Tensors, number: int) -> Tensors:
    """Return one of the samples of the inputs of a step, K × ….

    Tensors of a step are K × samples × ….
    """
    return {n: t[:, number] for n, t in inputs.items()}


PFEDME = ClientMethod(specs.PFEDME, PFedMeTrainer)
PERFEDAVG = ClientMethod(specs.PERFEDAVG, PerFedAvgTrainer)
