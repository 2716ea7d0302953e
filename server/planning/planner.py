"""Planner protocol: before each round, a decision on its privacy cost, or the end of the run."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from common.arrays import Floats
from common.errors import RunError
from common.methods.planners import PlannerOptions
from server.planning.arms import Offer, build_offer
from server.planning.constrainer import NO_DUAL, Dual
from server.planning.reward import has_plateaued
from server.planning.run_budget import RunBudget as RunBudget
from server.planning.state import PlannerState, empty_state


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
