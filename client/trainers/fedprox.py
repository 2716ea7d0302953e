"""The client side of FedProx."""

from client.stacked_tensors import Tensors
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.proximal import pulled
from client.trainers.spec import ClientMethod
from common.methods import fedprox
from common.methods.fedprox import FedProx


class FedProxTrainer(FedAvgTrainer):
    """Descent on L_k(θ) + μ/2‖θ − θ^c‖²."""

    def __init__(self, options: FedProx) -> None:
        super().__init__(options)
        self.mu = options.mu

    def correct(self, gradient: Tensors, params: Tensors, start: Tensors, control: Tensors) -> Tensors:
        """∇L_k + μ(θ − θ^c)."""
        return pulled(gradient, params, start, self.mu)


METHOD = ClientMethod(fedprox.METHOD, FedProxTrainer)
