"""Strategies of FedAvg (McMahan et al. 2017) and FedProx (Li et al. 2020)."""

from common.arrays import Arrays, scale, sub
from common.methods import fedavg, fedprox
from common.methods.fedavg import FedAvg
from common.methods.spec import MethodOptions
from server.aggregation.optimizers import OptimizerState, momentum
from server.aggregation.round_results import Collected
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts, ServerMethod


class FedAvgStrategy(RoundStrategy):
    """FedAvg: θ ← θ − ηₛm with m ← βm + Δ̄; FedAvgM for β > 0."""

    def __init__(self, options: FedAvg, parts: RoundParts) -> None:
        super().__init__(parts)
        self.eta, self.beta = options.eta, options.momentum

    def update(self, state: OptimizerState, model: Arrays, collected: Collected) -> tuple[Arrays, OptimizerState]:
        """Return θ − ηₛm, and m as state."""
        m, state = momentum(state, collected.mean_update(), self.beta)
        return sub(model, scale(m, self.eta(*self.next_round))), state


class MeanStrategy(RoundStrategy):
    """Mean of shared layers: θ ← θ − Δ̄; private layers keep their initial values, for new clients.

    FedProx and Per-FedAvg use it too; their proximal term and meta-gradient are in the clients' steps.
    """

    def __init__(self, options: MethodOptions, parts: RoundParts) -> None:
        super().__init__(parts)

    def update(self, state: OptimizerState, model: Arrays, collected: Collected) -> tuple[Arrays, OptimizerState]:
        """Return θ − Δ̄ over the shared layers."""
        step = collected.mean_update()
        return {**model, **sub({name: model[name] for name in step}, step)}, state


METHOD = ServerMethod(fedavg.METHOD, FedAvgStrategy)
FEDPROX = ServerMethod(fedprox.METHOD, MeanStrategy)
