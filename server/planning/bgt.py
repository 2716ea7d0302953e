"""BGTplanner: exploration of every arm, then predictor, constrainer and allocator (algorithms.md §4)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from common.arrays import Floats
from common.methods.planners import BGTplanner
from server.planning import bandit
from server.planning import state as constrainer
from server.planning.bandit import Kernel, Observations, Scales, exploitation, posterior, probabilities
from server.planning.planner import Decision, Offer, Planner, RunBudget, Stop, cost_levels, open_round, record_round
from server.planning.state import Dual, PlannerState, PlayedRounds, empty_state

SKIP = -1
"""Decision without a round: no client is asked, nothing is spent, and the reward is 0."""


@dataclass(frozen=True)
class BanditPlanner(Planner):
    """BGTplanner, Eq 4-13.

    Args:
        options: K, T₀, ℓ, ω, σ and the variants.
        budget: B, T and N.
    """

    options: BGTplanner
    budget: RunBudget

    @property
    def costs(self) -> Floats:
        """Costs of the arms, (K,), ascending."""
        return cost_levels(self.budget.share, self.options)

    @property
    def t0(self) -> int:
        """T₀ of this run, limited by its rounds."""
        return bandit.limit_t0(self.options.t0, self.options.arms, self.budget.rounds)

    @property
    def gamma(self) -> float:
        """γ of Eq 12."""
        size = self.options.context + 1 if self.options.gamma == "derived" else self.budget.clients + 2
        return exploitation(self.options.arms + self.options.skips, self.budget.rounds, size)

    def start(self) -> PlannerState:
        """Return the state before the first round."""
        return empty_state(self.options.context)

    def decide(
        self, state: PlannerState, context: Floats, remaining: Mapping[str, float], rng: np.random.Generator
    ) -> Decision | Stop:
        """Return an affordable arm: by schedule in stage 1, sampled by Eq 11-13 in stage 2.

        With wide arms, the end of the run once no arm has promised a gain in several decisions in a row.
        """
        offer = open_round(state, self.options, self.budget, self.costs, remaining)
        if isinstance(offer, Stop):
            return offer
        plan = replace(self._explore(state, offer), context=context)
        arm = SKIP
        while arm == SKIP:
            if plan.stage == "2":
                plan = self._exploit(plan, state, offer)
            if plan.doubts >= self.options.doubts:
                return Stop("no arm promises a gain", offer.retired)
            arm = self._draw(plan, rng)
            if arm == SKIP:
                state = replace(state, dual=self._descend(plan.dual, {}), doubts=plan.doubts)
                plan = replace(plan, skipped=plan.skipped + 1)
        return replace(plan, arm=arm, cost=float(offer.costs[arm]))

    def observe(
        self,
        state: PlannerState,
        decision: Decision,
        reward: float,
        spent: Mapping[str, float] | None = None,
        update_norm: float = 1.0,
    ) -> PlannerState:
        """Return the state after the round; in stage 2, λ makes one step (Eq 8)."""
        dual = decision.dual
        if dual.is_open:
            dual = self._descend(dual, dict.fromkeys(decision.active, decision.cost) if spent is None else spent)
        state = replace(state, doubts=decision.doubts)
        return record_round(state, decision, reward, update_norm, dual)

    def _descend(self, dual: Dual, spent: Mapping[str, float]) -> Dual:
        """Return λ after a step of Eq 8."""
        return constrainer.descend(
            dual, self._shares(spent), constrainer.step_size(self.budget.clients, self.budget.rounds)
        )

    def _draw(self, plan: Decision, rng: np.random.Generator) -> int:
        """Return a sampled arm, or `SKIP` with the probability that the arms leave."""
        if not self.options.skips:
            return int(rng.choice(self.options.arms, p=plan.probabilities))
        rest = max(1 - float(plan.probabilities.sum()), 0.0)
        return int(rng.choice(self.options.arms + 1, p=[rest, *plan.probabilities])) + SKIP

    def _explore(self, state: PlannerState, offer: Offer) -> Decision:
        """Return the uniform distribution over the due arms of stage 1, without an arm."""
        k, played = self.options.arms, state.history.arms.tolist()
        stage = bandit.stage_of(len(played), k, self.t0)
        due: Collection[int] = range(k)
        if stage == "1a":
            due = bandit.select_due(played, k, self.t0, self.options.arm_order)
        affordable = offer.arms
        if self.options.skips:
            spent = float(self.costs[state.history.arms].sum())
            within = affordable[self.costs[affordable] <= self.budget.total / 2 - spent]
            affordable = within if len(within) else affordable[:1]
        arms = bandit.select_candidates(due, affordable)
        p = _expand(np.full(len(arms), 1 / len(arms)), arms, k)
        return Decision(0, 0.0, offer.active, offer.retired, stage, probabilities=p)

    def _exploit(self, plan: Decision, state: PlannerState, offer: Offer) -> Decision:
        """Return the distribution of stage 2 over the arms, Eq 5, 11, 12 and 13."""
        dual = self._dual(state, offer)
        mean, sd = self._predict(state.history, plan.context)
        clients, arms = frozenset(offer.active), offer.arms
        value = mean + dual.value(self.costs / self.budget.share, clients)  # Eq 11
        if not self.options.skips:
            p = probabilities(value[arms], self.gamma)
            return replace(plan, probabilities=_expand(p, arms, self.options.arms), mean=mean, sd=sd, dual=dual)
        p = probabilities(np.append(dual.value(np.zeros(1), clients), value[arms]), self.gamma)[1:]
        is_hopeless = bool((mean + 2 * sd)[arms].max() <= 0)
        doubts = state.doubts + 1 if is_hopeless else 0
        whole = _expand(p, arms, self.options.arms)
        return replace(plan, probabilities=whole, mean=mean, sd=sd, dual=dual, doubts=doubts)

    def _dual(self, state: PlannerState, offer: Offer) -> Dual:
        """Return λ_t with joined and without retired clients; all equal in the first round of stage 2."""
        dual = state.dual if state.dual.is_open else constrainer.open_dual(self._price_bound(state.history))
        rounds_left = self.budget.rounds - len(state.history)
        dual = constrainer.dismiss(dual, offer.retired)
        return constrainer.admit(dual, self._shares(offer.remaining), rounds_left)

    def _predict(self, history: PlayedRounds, context: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations of Eq 5 at every arm under this round's context, (K,) each."""
        count, scale = len(history), self._scales(history)
        arms = np.arange(self.options.arms)
        queries = scale.inputs(arms, np.tile(context, (len(arms), 1)))
        mean, variance = posterior(
            self._kernel, _observe_rounds(history, scale, count), queries, np.full(len(arms), count + 1.0)
        )
        return mean, np.sqrt(variance)

    def _price_bound(self, history: PlayedRounds) -> float:
        """Return Z of Eq 10 in shares, from f̂₀ of stage 1a and its residuals in stage 1b (Eq 9)."""
        k, t0, scale = self.options.arms, self.t0, self._scales(history)
        rounds = np.arange(k * t0, (k + 1) * t0)
        queries = scale.inputs(np.tile(np.arange(k), t0), np.repeat(history.contexts[rounds], k, axis=0))
        fitted, _ = posterior(
            self._kernel, _observe_rounds(history, scale, k * t0), queries, np.repeat(rounds + 1.0, k)
        )
        predicted = fitted.reshape(t0, k)
        rewards = scale.rewards(history.rewards[: (k + 1) * t0])
        residuals = rewards[rounds] - predicted[np.arange(t0), history.arms[rounds]]
        m = bandit.confidence(residuals, k, self.budget.rounds, self.budget.clients)
        costs = self.costs / self.budget.share
        if self.options.skips:
            predicted, costs = np.pad(predicted, ((0, 0), (1, 0))), np.append(0.0, costs)
        best = bandit.best_mix(predicted, costs, 1 + 2 * m)
        return bandit.price_bound(best, m, float(np.abs(rewards).max()), self.options.z_mode)

    def _scales(self, history: PlayedRounds) -> Scales:
        if self.options.inputs == "code":
            return bandit.identity_scales(self.options.arms, self.options.context)
        first = (self.options.arms + 1) * self.t0
        return bandit.standardize(self.costs, history.contexts[:first], history.rewards[:first])

    def _shares(self, costs: Mapping[str, float]) -> dict[str, float]:
        return {name: cost / self.budget.share for name, cost in costs.items()}

    @property
    def _kernel(self) -> Kernel:
        return Kernel(self.options.length_scale, self.options.omega, self.options.sigma)


def _observe_rounds(history: PlayedRounds, scale: Scales, rounds: int) -> Observations:
    """Return the first `rounds` rounds, numbered from 1, as observations of the Gaussian process."""
    inputs = scale.inputs(history.arms[:rounds], history.contexts[:rounds])
    return Observations(inputs, scale.rewards(history.rewards[:rounds]), np.arange(1.0, rounds + 1))


def _expand(p: Floats, arms: NDArray[np.intp], k: int) -> Floats:
    """Return an array (K,) with p at the arms and 0 elsewhere."""
    whole = np.zeros(k)
    whole[arms] = p
    return whole
