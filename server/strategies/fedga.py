"""Strategy of FedGA (algorithms.md §2.2); clients send Δ_k alone, and the server computes |Δ_k|."""

import numpy as np

from common.arrays import Arrays, scale, sub
from common.methods import fedga
from common.methods.fedga import FedGA
from server.aggregation.denominators import describe
from server.aggregation.optimizers import OptimizerState, adaptive
from server.aggregation.round_results import Collected
from server.strategies.fedopt import FedOptStrategy
from server.strategies.spec import RoundParts, ServerMethod


class FedGAStrategy(FedOptStrategy):
    """FedGA: θ ← θ − ηₛ m_t/(√v_t + τ), with v_t = C-SME(v_{t−1}, Δ'_t²)."""

    def __init__(self, options: FedGA, parts: RoundParts) -> None:
        super().__init__(options, options.second_moment, parts)
        self.dra = options.dra

    def update(self, state: OptimizerState, model: Arrays, collected: Collected) -> tuple[Arrays, OptimizerState]:
        """Return θ − ηₛ m_t/(√v_t + τ), and m_t, v_t as state."""
        delta, magnitude = collected.mean_and_magnitude()  # lines 8-10: Δ_t = mean Δ_k, Δ'_t = mean |Δ_k|
        step, state = adaptive(state, delta, self.rule, magnitude if self.dra else None, **self.moments)  # lines 11-13
        return sub(model, scale(step, self.eta(*self.next_round))), state


class DescribedFedGA(FedGAStrategy):
    """FedGA that also reports what decides its denominators; the model is the same."""

    def update(self, state: OptimizerState, model: Arrays, collected: Collected) -> tuple[Arrays, OptimizerState]:
        """Return the same with the numbers of `describe` as a further group of the state."""
        model, after = super().update(state, model, collected)
        numbers = describe(state.get("v", {}), after["v"], *collected.mean_and_magnitude(), self.moments["tau"])
        return model, {**after, "denominators": {name: np.array(number) for name, number in numbers.items()}}

    def diagnostics(self, state: OptimizerState) -> dict[str, float]:
        """Return quantiles of the server's step sizes, and what decided them."""
        return super().diagnostics(state) | {name: float(number) for name, number in state["denominators"].items()}


METHOD = ServerMethod(
    fedga.METHOD, lambda options, parts: (DescribedFedGA if options.diagnostics else FedGAStrategy)(options, parts)
)
