"""Trainer of pFedMe (Dinh et al. 2020, Algorithm 1)."""

from client.trainers.base import ClientMethod
from client.trainers.fedavg import FedAvgTrainer
from client.training.stacks import Tensors
from client.training.steps import add_pull
from common.methods import pfedme
from common.methods.pfedme import PFedMe


class PFedMeTrainer(FedAvgTrainer):
    """Trainer with descent of θ_i from w on L_i(θ) + λ/2‖θ − w‖²; it sends w − w_i = ηλ(w − θ_i)."""

    def __init__(self, options: PFedMe) -> None:
        super().__init__(options)
        self.lam, self.rate = options.lam, options.envelope_lr * options.lam

    def correct(self, gradient: Tensors, params: Tensors, start: Tensors, control: Tensors) -> Tensors:
        """Return ∇L_i(θ) + λ(θ − w)."""
        return add_pull(gradient, params, start, self.lam)

    def upload(self, displacement: Tensors) -> Tensors:
        """Return ηλ(w − θ_i), the gradient step on the Moreau envelope."""
        return {n: self.rate * d for n, d in displacement.items()}


METHOD = ClientMethod(pfedme.METHOD, PFedMeTrainer)
