"""FedGA (algorithms.md §2.2); clients send Δ_k alone, and the server computes |Δ_k|."""

import numpy as np

from common.arrays import Array, Arrays, scale, sub
from common.contribution import Contribution
from common.methods.fedavg import FEDGA, FedGA
from server.aggregation.optimizers import QUANTILES, adaptive, effective_rates
from server.round.method import Groups, Method, RoundContext, ServerMethod


class FedGAStep(Method):
    """FedGA: θ ← θ − ηₛ m_t/(√v_t + τ), with v_t = C-SME(v_{t−1}, Δ'_t²)."""

    def __init__(self, options: FedGA) -> None:
        self.eta, self.rule = options.eta, options.second_moment
        self.dra, self.describes = options.dra, options.diagnostics
        self.moments = {"beta1": options.beta1, "beta2": options.beta2, "tau": options.tau}

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return θ − ηₛ m_t/(√v_t + τ), and m_t, v_t as state; with `diagnostics` also their causes."""
        delta, magnitude = total.mean_and_magnitude()  # lines 8-10: Δ_t = mean Δ_k, Δ'_t = mean |Δ_k|
        step, after = adaptive(state, delta, self.rule, magnitude if self.dra else None, **self.moments)  # lines 11-13
        if self.describes:
            causes = describe_denominators(state.get("v", {}), after["v"], delta, magnitude, self.moments["tau"])
            after |= {"denominators": {name: np.array(number) for name, number in causes.items()}}
        return sub(model, scale(step, self.eta(at.number, at.rounds))), after

    def diagnostics(self, at: RoundContext, state: Groups) -> dict[str, float]:
        """Return quantiles of the server's step sizes, and what decided them."""
        rates = effective_rates(state["v"], self.eta(at.number, at.rounds), self.moments["tau"])
        return rates | {name: float(number) for name, number in state.get("denominators", {}).items()}


METHOD = ServerMethod(FEDGA, FedGAStep)


def describe_denominators(
    before: Arrays, after: Arrays, mean_update: Arrays, magnitude: Arrays, tau: float
) -> dict[str, float]:
    """Return shares and quantiles over all parameters.

    `agreement_p5` to `agreement_p95` are quantiles of |Δ̄|/Δ' where Δ' > 0; DRA enlarges the magnitude by the inverse.
    `moved` is the share with Δ' > 0, `case_1` to `case_3` are shares of the cases of C-SME (algorithms.md §2.3), and
    `below_tau` is the share with √v_t < τ.

    Args:
        before: v_{t−1}; empty before the first round, where it is τ².
        after: v_t.
        mean_update: Δ̄.
        magnitude: Δ', of the same names and shapes.
        tau: τ, floor of the denominator.
    """
    delta, large = np.abs(_flat(mean_update)), _flat(magnitude)
    old, square = _flat(before) if before else np.full(large.shape, tau**2), np.square(large)
    moved = large > 0
    agreement = np.percentile(delta[moved] / large[moved], QUANTILES) if moved.any() else np.ones(len(QUANTILES))
    shares = {"moved": moved, "case_1": old <= square, "case_2": (old > square) & (old <= 2 * square)}
    shares |= {"case_3": old > 2 * square, "below_tau": _flat(after) < tau**2}
    found = {f"agreement_p{q}": float(value) for q, value in zip(QUANTILES, agreement, strict=True)}
    return {**found, **{name: float(share.mean()) for name, share in shares.items()}}


def _flat(arrays: Arrays) -> Array:
    return np.concatenate([np.ravel(arrays[name]) for name in sorted(arrays)]).astype(np.float64)
