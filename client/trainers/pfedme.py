"""The client side of pFedMe (Dinh et al. 2020, Algorithm 1); mirror of `server/strategies/pfedme.py`."""

from client.stacked_tensors import Tensors
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.proximal import pulled
from client.trainers.spec import ClientMethod
from common.methods import pfedme
from common.methods.pfedme import PFedMe


class PFedMeTrainer(FedAvgTrainer):
    """Keeps θ_i, which descends from w on L_i(θ) + λ/2‖θ − w‖², and sends w − w_i = ηλ(w − θ_i)."""

    def __init__(self, options: PFedMe) -> None:
        super().__init__(options)
        self.lam, self.rate = options.lam, options.envelope_lr * options.lam

    def correct(self, gradient: Tensors, params: Tensors, start: Tensors, control: Tensors) -> Tensors:
        """∇L_i(θ) + λ(θ − w)."""
        return pulled(gradient, params, start, self.lam)

    def upload(self, displacement: Tensors) -> Tensors:
        """ηλ(w − θ_i), the gradient step on the envelope."""
        return {n: self.rate * d for n, d in displacement.items()}


METHOD = ClientMethod(pfedme.METHOD, PFedMeTrainer)
