"""FedAdam, FedYogi and FedAdagrad (Reddi et al. 2021, Algorithm 2)."""

from functools import partial

from common.arrays import Arrays, scale, sub
from common.contribution import Contribution
from common.methods import fedavg as fedopt
from common.methods.fedavg import ServerAdaptive
from server.aggregation.optimizers import Rule, adaptive, effective_rates
from server.round.method import Groups, Method, RoundContext, ServerMethod


class FedOpt(Method):
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


FEDADAM = ServerMethod(fedopt.FEDADAM, partial(FedOpt, rule="adam"))
FEDYOGI = ServerMethod(fedopt.FEDYOGI, partial(FedOpt, rule="yogi"))
FEDADAGRAD = ServerMethod(fedopt.FEDADAGRAD, partial(FedOpt, rule="adagrad"))
