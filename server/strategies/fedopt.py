"""FedAdam, FedYogi and FedAdagrad on the server (Reddi et al. 2021, Algorithm 2)."""

from common.arrays import Arrays, scale, sub
from common.methods import fedopt
from common.methods.fedopt import ServerAdaptive
from server.aggregation.optimizers import OptimizerState, Rule, adaptive, effective_rates
from server.strategies.replies import Reply, mean_update
from server.strategies.round import RoundStrategy
from server.strategies.spec import RoundParts, ServerMethod


class FedOptStrategy(RoundStrategy):
    """θ ← θ − ηₛ m/(√v + τ)."""

    def __init__(self, algorithm: ServerAdaptive, rule: Rule, parts: RoundParts) -> None:
        super().__init__(parts)
        self.eta, self.rule = algorithm.eta, rule
        self.moments = {"beta1": algorithm.beta1, "beta2": algorithm.beta2, "tau": algorithm.tau}

    def update(self, memory: OptimizerState, model: Arrays, replies: list[Reply]) -> tuple[Arrays, OptimizerState]:
        """One server step."""
        step, memory = adaptive(memory, mean_update(replies), self.rule, **self.moments)
        return sub(model, scale(step, self.eta(*self.coming))), memory

    def diagnostics(self, memory: OptimizerState) -> dict[str, float]:
        """How the server's step sizes are spread."""
        return effective_rates(memory["v"], self.eta(self.state.round, self.config.rounds), self.moments["tau"])


FEDADAM = ServerMethod(fedopt.FEDADAM, lambda options, parts: FedOptStrategy(options, "adam", parts))
FEDYOGI = ServerMethod(fedopt.FEDYOGI, lambda options, parts: FedOptStrategy(options, "yogi", parts))
FEDADAGRAD = ServerMethod(fedopt.FEDADAGRAD, lambda options, parts: FedOptStrategy(options, "adagrad", parts))
