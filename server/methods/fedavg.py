"""Steps by the mean update: FedAvg, FedProx, FedAdam, FedYogi, FedAdagrad, personalized methods.

Sources: McMahan et al. 2017, Li et al. 2020, Reddi et al. 2021 (Algorithm 2).
"""

from functools import partial

from common.arrays import Arrays, scale, sub
from common.contribution import Contribution
from common.methods import fedavg, personalized
from common.methods.base import MethodOptions
from common.methods.fedavg import FedAvg, ServerAdaptive
from server.aggregation.optimizers import Rule, adaptive, effective_rates, momentum
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

    FedProx uses it too; its proximal term is in the clients' steps. So do personalized methods.
    """

    def __init__(self, options: MethodOptions) -> None:
        pass

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return θ − Δ̄ over the shared layers."""
        step = total.mean_update()
        return {**model, **sub({name: model[name] for name in step}, step)}, state


class FedOptStep(Method):
    """FedOpt: θ ← θ − ηₛ m/(√v + τ)."""

    def __init__(self, options: ServerAdaptive, rule: Rule) -> None:
        self.eta, self.rule = options.eta, rule
        self.moments = {"beta1": options.beta1, "beta2": options.beta2, "tau": options.tau}

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return θ − ηₛ m/(√v + τ), and m, v as state."""
        step, state = adaptive(state, total.mean_update(), self.rule, **self.moments)
        return sub(model, scale(step, self.eta(at.number, at.rounds))), state

    def diagnostics(self, at: RoundContext, state: Groups) -> dict[str, float]:
        """Return quantiles of the server's step sizes over the parameters."""
        return effective_rates(state["v"], self.eta(at.number, at.rounds), self.moments["tau"])


METHOD = ServerMethod(fedavg.FEDAVG, FedAvgStep)
FEDPROX = ServerMethod(fedavg.FEDPROX, Mean)
FEDADAM = ServerMethod(fedavg.FEDADAM, partial(FedOptStep, rule="adam"))
FEDYOGI = ServerMethod(fedavg.FEDYOGI, partial(FedOptStep, rule="yogi"))
FEDADAGRAD = ServerMethod(fedavg.FEDADAGRAD, partial(FedOptStep, rule="adagrad"))
FEDREP = ServerMethod(personalized.FEDREP, Mean)
DITTO = ServerMethod(personalized.DITTO, Mean)
LOCAL = ServerMethod(personalized.LOCAL, Mean)
