"""What every planner answers: which arm this round, or that the run is over."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np

from common.errors import RunError
from common.methods.planners import PlannerOptions
from server.planning.arms import FloatArray, Offer, offer
from server.planning.constrainer import CLOSED, Dual
from server.planning.reward import plateaued
from server.planning.state import State


@dataclass(frozen=True)
class Budget:
    """What may be spent.

    Args:
        total: B of a fresh client, in the unit of the account; no planner but FedSGD's can do with none.
        rounds: T_max.
        clients: N.
        power: A noise multiplier's exponent in the cost: 2 for `gaussian` (ρ ∝ 1/σ²), 1 for `laplace` (ε ∝ 1/b).
    """

    total: float
    rounds: int
    clients: int
    power: Literal[1, 2] = 2

    @property
    def share(self) -> float:
        """B/T."""
        return self.total / self.rounds


@dataclass(frozen=True)
class Decision:
    """One round's plan.

    Args:
        arm: a_t.
        cost: What every active client pays, in the unit of the account; nobody has less.
        active: Who can pay, sorted.
        retired: Who cannot pay even the cheapest arm, now or later, sorted.
        stage: `1a`, `1b`, `2`, or `fixed` where no arms are weighed.
        probabilities: (K,), 0 for arms that somebody cannot pay; (1,) in `fixed`.
        mean: (K,), predicted rewards in the predictor's unit; empty outside stage 2.
        sd: (K,), their standard deviations; empty outside stage 2.
        context: x_t (d,) that the decision was made with; empty in `fixed`.
        clip: Factor on the run's clip C, at most 1.
        dual: λ_t.
    """

    arm: int
    cost: float
    active: tuple[str, ...]
    retired: tuple[str, ...]
    stage: Literal["1a", "1b", "2", "fixed"] = "fixed"
    probabilities: FloatArray = field(default_factory=lambda: np.ones(1))
    mean: FloatArray = field(default_factory=lambda: np.zeros(0))
    sd: FloatArray = field(default_factory=lambda: np.zeros(0))
    context: FloatArray = field(default_factory=lambda: np.zeros(0))
    clip: float = 1.0
    dual: Dual = CLOSED

    def numbers(self) -> dict[str, float]:
        """What a journal may keep of it; predictions and λ (in shares of B/T) of stage 2 only."""
        said = {"arm": float(self.arm), "cost": self.cost, "p_arm": float(self.probabilities[self.arm])}
        said |= {"active": float(len(self.active)), "retired": float(len(self.retired))}
        if self.mean.size:
            said |= {"predicted": float(self.mean[self.arm]), "predicted_sd": float(self.sd[self.arm])}
            said |= {"lambda": self.dual.total, "lambda_max": self.dual.bound}
        return said


@dataclass(frozen=True)
class Agreed:
    """A round's decision as it was told to clients, which may have paid for it before the server went down.

    Args:
        number: The round.
        decision: What it costs.
        left: Client -> what it had left then.
        failed: Whether too few answered.
    """

    number: int
    decision: Decision
    left: Mapping[str, float]
    failed: bool = False

    def to_json(self) -> str:
        """For `agreed_in`."""
        return json.dumps(asdict(self), default=np.ndarray.tolist)


def agreed_in(text: str) -> Agreed:
    """Inverse of `Agreed.to_json`."""
    told: dict[str, Any] = json.loads(text)
    plan = told["decision"]
    plan |= {name: np.array(plan[name], np.float64) for name in ("probabilities", "mean", "sd", "context")}
    plan |= {name: tuple(plan[name]) for name in ("active", "retired")}
    dual = plan["dual"]
    dual |= {name: np.array(dual[name], np.float64) for name in ("weights", "rates")} | {"names": tuple(dual["names"])}
    return Agreed(**{**told, "decision": Decision(**{**plan, "dual": Dual(**dual)})})


@dataclass(frozen=True)
class Stop:
    """The run is over, and why."""

    reason: str
    retired: tuple[str, ...] = ()


class Planner(Protocol):
    """A pure rule: all it knows is in the state."""

    def start(self) -> State:
        """Before the first round."""

    def decide(
        self, state: State, context: FloatArray, remaining: Mapping[str, float], rng: np.random.Generator
    ) -> Decision | Stop:
        """The next round's plan.

        Args:
            state: After all earlier rounds.
            context: x_t (d,); planners that need none look at none.
            remaining: Budget left of each client that may be asked this round; infinite where nothing is accounted.
            rng: Made from the run's seed and the round, so that a resumed run draws the same.
        """

    def observe(
        self,
        state: State,
        decision: Decision,
        reward: float,
        spent: Mapping[str, float] | None = None,
        update_norm: float = 1.0,
    ) -> State:
        """The state after the round.

        Args:
            state: What the decision was made from.
            decision: The plan.
            reward: r_t, see `server.planning.reward`.
            spent: Client -> what it was charged; clients not named were charged nothing. All active ones pay if None.
            update_norm: Euclidean norm of the noisy mean update over the run's clip C.

        Raises:
            RunError: The reward is NaN or infinite.
        """


def opening(
    state: State, options: PlannerOptions, budget: Budget, costs: FloatArray, remaining: Mapping[str, float]
) -> Offer | Stop:
    """What may be spent this round, or why nothing more will be: what all planners share."""
    if len(state.history) >= budget.rounds:
        return Stop(f"all {budget.rounds} rounds are done")
    if options.stop == "plateau" and plateaued(state.history.rewards, options.patience, options.min_gain):
        return Stop(f"the last {options.patience} rounds gained nothing")
    offered = offer(costs, remaining)
    return offered if offered.active else Stop("no client can pay another round", offered.retired)


def recorded(state: State, decision: Decision, reward: float, update_norm: float, dual: Dual = CLOSED) -> State:
    """The state with this round in its history.

    Raises:
        RunError: The reward or the norm is NaN or infinite.
    """
    if not (math.isfinite(reward) and math.isfinite(update_norm)):
        raise RunError(f"the round's reward is {reward} and its norm {update_norm}: training diverges; lower the rate")
    history = state.history.then(decision.arm, decision.context, reward, update_norm)
    return replace(state, history=history, dual=dual)
