"""ADAP: noise shrinks while the loss keeps falling, and the clip follows the updates (algorithms.md §4.7; ours where lost)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from common.methods.planners import ADAP
from server.planning.arms import FloatArray
from server.planning.planner import Decision, RunBudget, Stop, open_round, record_round
from server.planning.state import PlayedRounds, State, empty_state


@dataclass(frozen=True)
class AdaptiveNoise:
    """Arm j is B/T with the noise multiplier times β^j; as many arms as one client's budget has room for.

    Args:
        options: β and the clip's rule.
        budget: B, T and how cost follows noise.
    """

    options: ADAP
    budget: RunBudget

    @property
    def costs(self) -> FloatArray:
        """(J,), rising: B/T·β^{−pj} up to B; B/T alone where β = 1."""
        step = self.budget.power * -math.log(self.options.beta)
        count = 1 + int(math.log(self.budget.rounds) / step) if step else 1
        return np.asarray(self.budget.share * np.exp(step * np.arange(count)), np.float64)

    def start(self) -> State:
        """Before the first round."""
        return empty_state()

    def decide(
        self, state: State, context: FloatArray, remaining: Mapping[str, float], rng: np.random.Generator
    ) -> Decision | Stop:
        """The least noise that is due and that everybody can pay."""
        offered = open_round(state, self.options, self.budget, self.costs, remaining)
        if isinstance(offered, Stop):
            return offered
        arm = min(count_decays(state.history.rewards, self.options.falls), int(offered.arms[-1]))
        p = np.eye(len(offered.costs))[arm]
        clip = self._clip(state.history)
        return Decision(arm, float(offered.costs[arm]), offered.active, offered.retired, probabilities=p, clip=clip)

    def observe(
        self,
        state: State,
        decision: Decision,
        reward: float,
        spent: Mapping[str, float] | None = None,
        update_norm: float = 1.0,
    ) -> State:
        """One round more."""
        return record_round(state, decision, reward, update_norm)

    def _clip(self, history: PlayedRounds) -> float:
        """A multiple of the last noisy norm, within the run's own clip: noise alone would else enlarge it for ever."""
        if not len(history):
            return 1.0
        return float(np.clip(self.options.clip_factor * history.norms[-1], self.options.clip_floor, 1.0))


def count_decays(rewards: FloatArray, falls: int) -> int:
    """How often the loss fell `falls` times in a row (rewards (t,) are positive then); every time counts anew."""
    count = streak = 0
    for reward in rewards:
        streak = streak + 1 if reward > 0 else 0
        if streak == falls:
            count, streak = count + 1, 0
    return count
