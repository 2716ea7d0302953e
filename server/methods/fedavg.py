"""FedAvg (McMahan et al. 2017), FedProx (Li et al. 2020), personalized methods: steps by the mean."""

from common.arrays import Arrays, scale, sub
from common.contribution import Contribution
from common.methods import fedavg, personalized
from common.methods.base import MethodOptions
from common.methods.fedavg import FedAvg
from server.aggregation.optimizers import momentum
from server.round.method import Groups, Method, RoundContext, ServerMethod


class FedAvgStep(Method):
    """FedAvg: θ ← θ − ηₛm with m ← βm + Δ̄; FedAvgM for β > 0."""

    def __init__(self, options: FedAvg) -> None:
        self.eta, self.beta = options.eta, options.momentum

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return θ − ηₛm, and m as state."""
        m, state = momentum(state, total.mean_update(), self.beta)
        return sub(model, scale(m, self.eta(at.number, at.rounds))), state


class Mean(Method):
    """Mean of shared layers: θ ← θ − Δ̄; private layers keep their initial values, for new clients.

    FedProx uses it too; its proximal term is in the clients' steps.
    """

    def __init__(self, options: MethodOptions) -> None:
        pass

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return θ − Δ̄ over the shared layers."""
        step = total.mean_update()
        return {**model, **sub({name: model[name] for name in step}, step)}, state


METHOD = ServerMethod(fedavg.FEDAVG, FedAvgStep)
FEDPROX = ServerMethod(fedavg.FEDPROX, Mean)
FEDREP = ServerMethod(personalized.FEDREP, Mean)
DITTO = ServerMethod(personalized.DITTO, Mean)
LOCAL = ServerMethod(personalized.LOCAL, Mean)
