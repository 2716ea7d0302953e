"""Strategy of FedAdam, FedYogi and FedAdagrad (Reddi et al. 2021, Algorithm 2)."""

from common.arrays import Arrays, scale, sub
from common.methods import fedavg as fedopt
from common.methods.fedavg import ServerAdaptive
from server.aggregation.optimizers import OptimizerState, Rule, adaptive, effective_rates
from server.aggregation.results import Collected
from server.round.method import RoundParts, ServerMethod
from server.round.round import RoundStrategy


class FedOptStrategy(RoundStrategy):
    """FedOpt: θ ← θ − ηₛ m/(√v + τ)."""

    def __init__(self, options: ServerAdaptive, rule: Rule, parts: RoundParts) -> None:
        super().__init__(parts)
        self.eta, self.rule = options.eta, rule
        self.moments = {"beta1": options.beta1, "beta2": options.beta2, "tau": options.tau}

    def update(self, state: OptimizerState, model: Arrays, collected: Collected) -> tuple[Arrays, OptimizerState]:
        """Return θ − ηₛ m/(√v + τ), and m, v as state."""
        step, state = adaptive(state, collected.mean_update(), self.rule, **self.moments)
        return sub(model, scale(step, self.eta(*self.next_round))), state

    def diagnostics(self, state: OptimizerState) -> dict[str, float]:
        """Return quantiles of the server's step sizes over the parameters."""
        return effective_rates(state["v"], self.eta(self.state.round, self.config.rounds), self.moments["tau"])


FEDADAM = ServerMethod(fedopt.FEDADAM, lambda options, parts: FedOptStrategy(options, "adam", parts))
FEDYOGI = ServerMethod(fedopt.FEDYOGI, lambda options, parts: FedOptStrategy(options, "yogi", parts))
FEDADAGRAD = ServerMethod(fedopt.FEDADAGRAD, lambda options, parts: FedOptStrategy(options, "adagrad", parts))
