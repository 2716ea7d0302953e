"""Strategies whose step is the mean: FedAvg (McMahan et al. 2017), FedProx (Li et al. 2020), and personalized methods."""

from common.arrays import Arrays, scale, sub
from common.methods import fedavg, personalized
from common.methods import fedavg as fedprox
from common.methods.base import MethodOptions
from common.methods.fedavg import FedAvg
from server.aggregation.optimizers import OptimizerState, momentum
from server.aggregation.results import Collected
from server.round.method import RoundParts, ServerMethod
from server.round.round import RoundStrategy


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

    FedProx uses it too; its proximal term is in the clients' steps.
    """

    def __init__(self, options: MethodOptions, parts: RoundParts) -> None:
        super().__init__(parts)

    def update(self, state: OptimizerState, model: Arrays, collected: Collected) -> tuple[Arrays, OptimizerState]:
        """Return θ − Δ̄ over the shared layers."""
        step = collected.mean_update()
        return {**model, **sub({name: model[name] for name in step}, step)}, state


METHOD = ServerMethod(fedavg.FEDAVG, FedAvgStrategy)
FEDPROX = ServerMethod(fedprox.FEDPROX, MeanStrategy)


FEDREP = ServerMethod(personalized.FEDREP, MeanStrategy)
DITTO = ServerMethod(personalized.DITTO, MeanStrategy)
LOCAL = ServerMethod(personalized.LOCAL, MeanStrategy)
