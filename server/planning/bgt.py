"""BGTplanner (algorithms.md §4): predictor, constrainer and allocator after a stage that plays every arm."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from common.methods.planners import BGTplanner
from server.planning import constrainer, exploration, scales
from server.planning.allocator import exploitation, probabilities
from server.planning.arms import FloatArray, Offer, cost_levels
from server.planning.constrainer import Dual
from server.planning.planner import Decision, RunBudget, Stop, open_round, record_round
from server.planning.predictor import Kernel, Observations, posterior
from server.planning.scales import Scales
from server.planning.state import PlayedRounds, State, empty_state


@dataclass(frozen=True)
class BanditPlanner:
    """Eq 4-13, round by round.

    Args:
        options: K, T₀, ℓ, ω, σ and the readings.
        budget: B, T and N.
    """

    options: BGTplanner
    budget: RunBudget

    @property
    def costs(self) -> FloatArray:
        """(K,), rising."""
        o = self.options
        return cost_levels(self.budget.total, self.budget.rounds, o.t_min, o.arms, o.spacing)

    @property
    def t0(self) -> int:
        """T₀ of this run."""
        return exploration.limit_t0(self.options.t0, self.options.arms, self.budget.rounds)

    @property
    def gamma(self) -> float:
        """γ of Eq 12."""
        size = self.options.context + 1 if self.options.gamma == "derived" else self.budget.clients + 2
        return exploitation(self.options.arms, self.budget.rounds, size)

    def start(self) -> State:
        """Before the first round."""
        return empty_state(self.options.context)

    def decide(
        self, state: State, context: FloatArray, remaining: Mapping[str, float], rng: np.random.Generator
    ) -> Decision | Stop:
        """An arm by schedule in stage 1, drawn by Eq 11-13 in stage 2; only arms that everybody can pay."""
        offered = open_round(state, self.options, self.budget, self.costs, remaining)
        if isinstance(offered, Stop):
            return offered
        plan = self._explored(state, offered)
        if plan.stage == "2":
            plan = self._exploited(replace(plan, context=context), state, offered)
        arm = int(rng.choice(self.options.arms, p=plan.probabilities))
        return replace(plan, arm=arm, cost=float(offered.costs[arm]), context=context)

    def observe(
        self,
        state: State,
        decision: Decision,
        reward: float,
        spent: Mapping[str, float] | None = None,
        update_norm: float = 1.0,
    ) -> State:
        """The round in the history, and in stage 2 λ one step further (Eq 8)."""
        dual = decision.dual
        if dual.opened:
            charged = dict.fromkeys(decision.active, decision.cost) if spent is None else spent
            eta = constrainer.step_size(self.budget.clients, self.budget.rounds)
            dual = constrainer.descend(dual, self._shares(charged), eta)
        return record_round(state, decision, reward, update_norm, dual)

    def _explored(self, state: State, offered: Offer) -> Decision:
        """Stage 1: the arms that are due are drawn evenly."""
        k, played = self.options.arms, state.history.arms.tolist()
        stage = exploration.stage_of(len(played), k, self.t0)
        due: Collection[int] = range(k)
        if stage == "1a":
            due = exploration.select_due(played, k, self.t0, self.options.arm_order)
        arms = exploration.select_candidates(due, offered.arms)
        p = _expand(np.full(len(arms), 1 / len(arms)), arms, k)
        return Decision(0, 0.0, offered.active, offered.retired, stage, probabilities=p)

    def _exploited(self, plan: Decision, state: State, offered: Offer) -> Decision:
        """Stage 2: Eq 5, 11, 12 and 13."""
        dual = self._dual(state, offered)
        mean, sd = self._predict(state.history, plan.context)
        value = mean + dual.value(self.costs / self.budget.share, frozenset(offered.active))  # Eq 11
        p = _expand(probabilities(value[offered.arms], self.gamma), offered.arms, self.options.arms)
        return replace(plan, probabilities=p, mean=mean, sd=sd, dual=dual)

    def _dual(self, state: State, offered: Offer) -> Dual:
        """λ_t with those who came, without those who cannot pay; all equal in the first round of stage 2."""
        dual = state.dual if state.dual.opened else constrainer.open_dual(self._price_bound(state.history))
        left = self.budget.rounds - len(state.history)
        dual = constrainer.dismiss(dual, offered.retired)
        return constrainer.admit(dual, self._shares(offered.remaining), left)

    def _predict(self, history: PlayedRounds, context: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Eq 5 at every arm under this round's context: means and standard deviations, (K,) each."""
        seen, seer = len(history), self._scales(history)
        arms = np.arange(self.options.arms)
        queries = seer.inputs(arms, np.tile(context, (len(arms), 1)))
        mean, variance = posterior(
            self._kernel, _observations(history, seer, seen), queries, np.full(len(arms), seen + 1.0)
        )
        return mean, np.sqrt(variance)

    def _price_bound(self, history: PlayedRounds) -> float:
        """Z of Eq 10 in shares, from f̂₀ of stage 1a and what it misses in stage 1b (Eq 9)."""
        k, t0, seer = self.options.arms, self.t0, self._scales(history)
        rounds = np.arange(k * t0, (k + 1) * t0)
        queries = seer.inputs(np.tile(np.arange(k), t0), np.repeat(history.contexts[rounds], k, axis=0))
        fitted, _ = posterior(self._kernel, _observations(history, seer, k * t0), queries, np.repeat(rounds + 1.0, k))
        predicted = fitted.reshape(t0, k)
        rewards = seer.rewards(history.rewards[: (k + 1) * t0])
        residuals = rewards[rounds] - predicted[np.arange(t0), history.arms[rounds]]
        m = exploration.confidence(residuals, k, self.budget.rounds, self.budget.clients)
        best = exploration.best_mix(predicted, self.costs / self.budget.share, 1 + 2 * m)
        return exploration.price_bound(best, m, float(np.abs(rewards).max()), self.options.z_mode)

    def _scales(self, history: PlayedRounds) -> Scales:
        if self.options.inputs == "code":
            return scales.identity_scales(self.options.arms, self.options.context)
        first = (self.options.arms + 1) * self.t0
        return scales.standardize(self.costs, history.contexts[:first], history.rewards[:first])

    def _shares(self, costs: Mapping[str, float]) -> dict[str, float]:
        return {name: cost / self.budget.share for name, cost in costs.items()}

    @property
    def _kernel(self) -> Kernel:
        return Kernel(self.options.length_scale, self.options.omega, self.options.sigma)


def _observations(history: PlayedRounds, seer: Scales, rounds: int) -> Observations:
    """The first so many rounds, counted from 1."""
    inputs = seer.inputs(history.arms[:rounds], history.contexts[:rounds])
    return Observations(inputs, seer.rewards(history.rewards[:rounds]), np.arange(1.0, rounds + 1))


def _expand(p: FloatArray, arms: NDArray[np.intp], k: int) -> FloatArray:
    """(K,) with p at these arms and 0 elsewhere."""
    whole = np.zeros(k)
    whole[arms] = p
    return whole
