"""The client side of Per-FedAvg (Fallah et al. 2020, Algorithm 1); mirror of `server/strategies/perfedavg.py`."""

from torch import Tensor

from client.stacked_tensors import Tensors
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.gradient_descent import GradientAndLoss
from common.methods.registry import PerFedAvg


class PerFedAvgTrainer(FedAvgTrainer):
    """Descends along ∇L_k at the adapted parameters; a client's own model is one adapted from the shared one."""

    own = "adapted"

    def __init__(self, options: PerFedAvg) -> None:
        super().__init__(options)
        self.alpha, self.delta = options.alpha, options.delta
        self.first_order = options.variant == "first-order"
        self.draws = 2 if self.first_order else 3

    def objective(self, plain: GradientAndLoss) -> GradientAndLoss:
        """∇F_k(w) and L_k(w) from ∇L_k: (I − α∇²L_k(w; D″)) ∇L_k(w − α∇L_k(w; D); D′)."""

        def meta(params: Tensors, batch: Tensors, noise: Tensors) -> tuple[Tensors, Tensor]:
            first, value = plain(params, batch, _draw(noise, 0))
            g, _ = plain(_moved(params, first, -self.alpha), batch, _draw(noise, 1))
            if self.first_order:
                return g, value
            ahead, _ = plain(_moved(params, g, self.delta), batch, _draw(noise, 2))
            behind, _ = plain(_moved(params, g, -self.delta), batch, _draw(noise, 2))
            curved = {n: (ahead[n] - behind[n]) / (2 * self.delta) for n in g}
            return _moved(g, curved, -self.alpha), value

        return meta


def _moved(tensors: Tensors, along: Tensors, size: float) -> Tensors:
    return {n: t + size * along[n] for n, t in tensors.items()}


def _draw(noise: Tensors, number: int) -> Tensors:
    """One of a step's draws."""
    return {n: t[number] for n, t in noise.items()}
