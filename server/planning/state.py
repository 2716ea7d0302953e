"""State of a planner as one frozen value, for checkpoints."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from common.arrays import Arrays, Floats, Ints
from server.planning.constrainer import NO_DUAL, Dual

HISTORY, DUAL = "planner_history", "planner_dual"
"""Groups of a planner in the run's state."""


@dataclass(frozen=True)
class PlayedRounds:
    """History of a run's rounds, oldest first.

    Args:
        arms: Arms, (t,).
        contexts: Contexts, (t, d).
        rewards: Unscaled rewards, (t,).
        norms: Norms of the noisy mean updates, divided by the clip norm C, (t,).
    """

    arms: Ints
    contexts: Floats
    rewards: Floats
    norms: Floats

    def __len__(self) -> int:
        return len(self.arms)

    def append(self, arm: int, context: Floats, reward: float, norm: float) -> "PlayedRounds":
        """Return the history with one more round."""
        return PlayedRounds(
            np.append(self.arms, arm),
            np.vstack([self.contexts, context]),
            np.append(self.rewards, reward),
            np.append(self.norms, norm),
        )


@dataclass(frozen=True)
class PlannerState:
    """State of a planner between two rounds."""

    history: PlayedRounds
    dual: Dual = NO_DUAL
    doubts: int = 0
    """Number of decisions in a row in which no arm promised a gain."""


def empty_state(context: int = 0) -> PlannerState:
    """Return the state before the first round; `context` is the number of singular values of a context."""
    return PlannerState(PlayedRounds(np.zeros(0, np.int64), np.zeros((0, context)), np.zeros(0), np.zeros(0)))


def to_groups(state: PlannerState) -> dict[str, Arrays]:
    """Return the state as groups of arrays; names of clients are JSON bytes."""
    history, dual = state.history, state.dual
    names = np.frombuffer(json.dumps(dual.names).encode(), np.uint8)
    scalars = np.array([dual.bound, dual.slack, state.doubts])
    return {
        HISTORY: dict(vars(history)),
        DUAL: {"scalars": scalars, "names": names, "weights": dual.weights, "rates": dual.rates},
    }


def from_groups(groups: dict[str, Arrays]) -> PlannerState:
    """Return the state from the groups of `to_groups`; other groups are ignored.

    Raises:
        KeyError: A group is missing.
    """
    arrays = groups[DUAL]
    bound, slack, *rest = (float(x) for x in arrays["scalars"])  # checkpoints of earlier releases have no doubts
    names = tuple(json.loads(arrays["names"].tobytes()))
    return replace(
        PlannerState(PlayedRounds(**groups[HISTORY])),
        dual=Dual(bound, names, arrays["weights"], slack, arrays["rates"]),
        doubts=int(sum(rest)),
    )


def pack_values(values: Mapping[str, float]) -> Arrays:
    """Return one number per client as arrays; names are JSON bytes."""
    names = np.frombuffer(json.dumps(sorted(values)).encode(), np.uint8)
    return {"names": names, "values": np.array([values[name] for name in sorted(values)])}


def unpack_values(arrays: Arrays) -> dict[str, float]:
    """Return the numbers from the arrays of `pack_values`; empty if there are none."""
    if "names" not in arrays:
        return {}
    return dict(zip(json.loads(arrays["names"].tobytes()), arrays["values"].tolist(), strict=True))
