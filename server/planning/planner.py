"""Planner protocol: before each round, a decision on its privacy cost, or the end of the run."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from common.arrays import Floats
from common.config.run import RunConfig
from common.errors import RunError
from common.methods.planners import ArmOptions, PlannerOptions, PlannerSpec
from common.privacy.mechanisms import build_account, select_spec
from common.privacy.options import count_participations
from server.planning.reward import has_plateaued
from server.planning.state import NO_DUAL, Dual, PlannerState, empty_state


@dataclass(frozen=True)
class RunBudget:
    """Privacy budget of a run.

    Args:
        total: Budget B of a client before the first round, in the unit of the account; infinite in runs without noise.
        rounds: Number T_max of rounds.
        clients: Number N of clients.
        power: Exponent of 1/noise in the cost: 2 for `gaussian` (ρ ∝ 1/σ²), 1 for `laplace` (ε ∝ 1/b).
        cohort: Share q of the clients that a round asks.
        planned: Number of rounds of a client over which B is spread; 0 to derive it from q.
        before: Budget of a client for rounds before these.
        after: Budget of a client for rounds after these.
    """

    total: float
    rounds: int
    clients: int
    power: Literal[1, 2] = 2
    cohort: float = 1.0
    planned: int = 0
    before: float = 0.0
    after: float = 0.0

    @property
    def participations(self) -> int:
        """Number of rounds over which a client's budget is spread: T·q and two standard deviations, at most T."""
        return count_participations(self.rounds, self.cohort, self.planned)

    @property
    def whole(self) -> float:
        """Budget of a client for all rounds of the run."""
        return self.before + self.total + self.after

    @property
    def share(self) -> float:
        """Even share of a round in which the client takes part; B/T if it takes part in all."""
        return self.total / self.participations


SLACK = 1e-9
"""Relative shortfall that counts as rounding: 100·(B/100) ≠ B in floats. The cost is then the
remaining budget."""


@dataclass(frozen=True)
class Offer:
    """Affordable arms of one round.

    Args:
        active: Clients that can pay at least the cheapest arm, sorted.
        retired: Clients that cannot pay any arm, sorted.
        arms: A_t, the indices of the arms that all active clients can pay; not empty if there is an active client.
        costs: Costs of all arms, (K,).
        remaining: Remaining budget of each active client.
    """

    active: tuple[str, ...]
    retired: tuple[str, ...]
    arms: NDArray[np.intp]
    costs: Floats
    remaining: Mapping[str, float]


def cost_levels(share: float, options: ArmOptions) -> Floats:
    """Return the costs of the arms, ascending, (K,).

    Args:
        share: B/T_max.
        options: K and the kind of the arms. `paper`: from B/T_max to B/T_min, which `spacing=code` does not reach.
            `wide`: each twice the one before, from half of B/T_max.
    """
    k = options.arms
    if options.arms_kind == "wide":
        return np.asarray(share * 2.0 ** np.arange(-1, k - 1), np.float64)
    return np.linspace(share, share / options.t_min, k, endpoint=options.spacing == "linspace")


def build_offer(costs: Floats, remaining: Mapping[str, float]) -> Offer:
    """Return the arms A_t that all active clients can pay; clients that cannot pay any arm retire.

    Args:
        costs: Costs of the arms, (K,), ascending.
        remaining: Client -> remaining budget; NaN and negative numbers pay nothing.
    """
    cheapest = float(costs[0]) * (1 - SLACK)
    active = tuple(sorted(name for name, budget in remaining.items() if budget >= cheapest))
    retired = tuple(sorted(remaining.keys() - set(active)))
    minimum = min((remaining[name] for name in active), default=0.0)
    arms = np.flatnonzero(costs * (1 - SLACK) <= minimum)
    charged = np.where(costs * (1 - SLACK) <= minimum, np.minimum(costs, minimum), costs)
    return Offer(active, retired, arms, charged, {name: remaining[name] for name in active})


@dataclass(frozen=True)
class Decision:
    """Decision on one round.

    Args:
        arm: a_t.
        cost: Cost for every active client, in the unit of the account; at most the remaining budget of each.
        active: Clients that can pay, sorted.
        retired: Clients that cannot pay the cheapest arm, in this and later rounds, sorted.
        stage: `1a`, `1b`, `2`, or `fixed` for planners without exploration.
        probabilities: Probabilities of the arms, (K,), 0 for unaffordable ones; (1,) for schedules.
        mean: Predicted rewards in the predictor's unit, (K,); empty outside stage 2.
        sd: Standard deviations of the predictions, (K,); empty outside stage 2.
        context: Context x_t of the decision, (d,); empty in `fixed`.
        clip: Factor on the run's clip norm C, at most 1.
        dual: λ_t.
        skipped: Number of decisions to skip before this one.
        doubts: Number of decisions in a row, with this one, in which no arm promised a gain.
    """

    arm: int
    cost: float
    active: tuple[str, ...]
    retired: tuple[str, ...]
    stage: Literal["1a", "1b", "2", "fixed"] = "fixed"
    probabilities: Floats = field(default_factory=lambda: np.ones(1))
    mean: Floats = field(default_factory=lambda: np.zeros(0))
    sd: Floats = field(default_factory=lambda: np.zeros(0))
    context: Floats = field(default_factory=lambda: np.zeros(0))
    clip: float = 1.0
    dual: Dual = NO_DUAL
    skipped: int = 0
    doubts: int = 0

    def numbers(self) -> dict[str, float]:
        """Return the numbers for the journal; predictions and λ (in shares of B/T) in stage 2 only."""
        numbers = {"arm": float(self.arm), "cost": self.cost, "p_arm": float(self.probabilities[self.arm])}
        numbers |= {"active": float(len(self.active)), "retired": float(len(self.retired))}
        numbers |= {"skipped": float(self.skipped)} if self.skipped else {}
        if self.mean.size:
            numbers |= {"predicted": float(self.mean[self.arm]), "predicted_sd": float(self.sd[self.arm])}
            numbers |= {"lambda": self.dual.total, "lambda_max": self.dual.bound}
        return numbers


@dataclass(frozen=True)
class RoundDecision:
    """Decision that was sent to clients, which may have been charged for it before the server stopped.

    Args:
        number: Number of the round.
        decision: Decision on the round.
        left: Client -> remaining budget before the round.
        failed: True if the quorum was missed.
    """

    number: int
    decision: Decision
    left: Mapping[str, float]
    failed: bool = False

    def to_json(self) -> str:
        """Return the text that `read_round_decision` reads."""
        return json.dumps(asdict(self), default=np.ndarray.tolist)


def read_round_decision(text: str) -> RoundDecision:
    """Read the text of `RoundDecision.to_json`."""
    fields: dict[str, Any] = json.loads(text)
    plan = fields["decision"]
    plan |= {name: np.array(plan[name], np.float64) for name in ("probabilities", "mean", "sd", "context")}
    plan |= {name: tuple(plan[name]) for name in ("active", "retired")}
    dual = plan["dual"]
    dual |= {name: np.array(dual[name], np.float64) for name in ("weights", "rates")} | {"names": tuple(dual["names"])}
    return RoundDecision(**{**fields, "decision": Decision(**{**plan, "dual": Dual(**dual)})})


@dataclass(frozen=True)
class Stop:
    """Decision to end the run, with the reason."""

    reason: str
    retired: tuple[str, ...] = ()


class Planner(ABC):
    """Planner as pure functions of its state."""

    def start(self) -> PlannerState:
        """Return the state before the first round."""
        return empty_state()

    @abstractmethod
    def decide(
        self, state: PlannerState, context: Floats, remaining: Mapping[str, float], rng: np.random.Generator
    ) -> Decision | Stop:
        """Return the decision on the next round.

        Args:
            state: State after all earlier rounds.
            context: Context x_t, (d,); ignored by planners without contexts.
            remaining: Remaining budget of each available client; infinite in runs without noise.
            rng: Generator seeded by the run's seed and the round; a resumed run samples the same numbers.
        """

    def observe(
        self,
        state: PlannerState,
        decision: Decision,
        reward: float,
        spent: Mapping[str, float] | None = None,
        update_norm: float = 1.0,
    ) -> PlannerState:
        """Return the state after the round.

        Args:
            state: State before the round.
            decision: Decision on the round.
            reward: Reward r_t of `server.planning.reward`.
            spent: Client -> charged cost, 0 for missing clients; None: all active clients are charged.
            update_norm: L2 norm of the noisy mean update, divided by the run's clip norm C.

        Raises:
            RunError: The reward or the norm is non-finite.
        """
        return record_round(state, decision, reward, update_norm)


@dataclass(frozen=True)
class ServerPlanner:
    """Server side of a planner.

    Args:
        spec: Definition shared by server and clients.
        build: Builder of the planner, from its options and the budget.
    """

    spec: PlannerSpec
    build: Callable[[Any, RunBudget], Planner]


def open_round(
    state: PlannerState, options: PlannerOptions, budget: RunBudget, costs: Floats, remaining: Mapping[str, float]
) -> Offer | Stop:
    """Return the affordable arms of the next round, or the end of the run; common to all planners."""
    if len(state.history) >= budget.rounds:
        return Stop(f"all {budget.rounds} rounds are done")
    if options.stop == "plateau" and has_plateaued(state.history.rewards, options.patience, options.min_gain):
        return Stop(f"the last {options.patience} rounds brought no gain")
    offer = build_offer(costs, remaining)
    return offer if offer.active else Stop("no client can pay another round", offer.retired)


def record_round(
    state: PlannerState, decision: Decision, reward: float, update_norm: float, dual: Dual = NO_DUAL
) -> PlannerState:
    """Return the state with the round in its history.

    Raises:
        RunError: The reward or the norm is non-finite.
    """
    if not (math.isfinite(reward) and math.isfinite(update_norm)):
        raise RunError(f"training diverged (reward {reward}, norm of the update {update_norm}); lower lr")
    history = state.history.append(decision.arm, decision.context, reward, update_norm)
    return replace(state, history=history, dual=dual)


def total_of(config: RunConfig) -> float:
    """Return the privacy budget of a client for all rounds of a run; infinite without noise."""
    options = config.privacy
    if options.unit == "none":
        return np.inf
    return build_account(options).total(options.epsilon, options.delta) - config.side_cost


def budget_of(config: RunConfig, phase: int = -1) -> RunBudget:
    """Return the privacy budget of the rounds of a phase; without a number, of the training."""
    options, total, rounds = config.privacy, total_of(config), config.rounds - config.first_rounds
    if options.unit == "none":
        return RunBudget(total, config.phases[phase].rounds if phase == 0 else rounds, 1)
    power, first = select_spec(options).cost_power, options.first_share * total if config.first else 0.0
    if config.first and phase == 0:
        return RunBudget(first, config.first_rounds, 1, power, after=total - first)
    return RunBudget(total - first, rounds, 1, power, planned=options.participations, before=first)
