"""Trainer of FedProx (Li et al. 2020)."""

from client.trainers.base import ClientMethod
from client.trainers.fedavg import FedAvgTrainer
from client.training.stacks import Tensors
from client.training.steps import add_pull
from common.methods import fedavg as fedprox
from common.methods.fedavg import FedProx


class FedProxTrainer(FedAvgTrainer):
    """Trainer with local descent on L_k(θ) + μ/2‖θ − θ^c‖²."""

    def __init__(self, options: FedProx) -> None:
        super().__init__(options)
        self.mu = options.mu

    def correct(self, gradient: Tensors, params: Tensors, start: Tensors, control: Tensors) -> Tensors:
        """Return ∇L_k + μ(θ − θ^c)."""
        return add_pull(gradient, params, start, self.mu)


METHOD = ClientMethod(fedprox.FEDPROX, FedProxTrainer)
