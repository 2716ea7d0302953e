"""All that a planner remembers, as one frozen value that a checkpoint can hold."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from common.arrays import Arrays
from server.planning.arms import FloatArray
from server.planning.constrainer import CLOSED, Dual

HISTORY, DUAL = "planner_history", "planner_dual"
"""Groups in a run's memory."""


@dataclass(frozen=True)
class PlayedRounds:
    """The rounds so far, oldest first.

    Args:
        arms: (t,).
        contexts: (t, d).
        rewards: (t,), as they came.
        norms: (t,), of the noisy mean update over the clip C.
    """

    arms: NDArray[np.int64]
    contexts: FloatArray
    rewards: FloatArray
    norms: FloatArray

    def __len__(self) -> int:
        return len(self.arms)

    def then(self, arm: int, context: FloatArray, reward: float, norm: float) -> "PlayedRounds":
        """With one more round."""
        return PlayedRounds(
            np.append(self.arms, arm),
            np.vstack([self.contexts, context]),
            np.append(self.rewards, reward),
            np.append(self.norms, norm),
        )


@dataclass(frozen=True)
class State:
    """What a planner knows between two rounds; everything else follows from it."""

    history: PlayedRounds
    dual: Dual = CLOSED


def empty_state(context: int = 0) -> State:
    """Nothing has happened yet; contexts will have that many numbers."""
    return State(PlayedRounds(np.zeros(0, np.int64), np.zeros((0, context)), np.zeros(0), np.zeros(0)))


def to_groups(state: State) -> dict[str, Arrays]:
    """The state as groups of arrays; names of clients as JSON bytes."""
    history, dual = state.history, state.dual
    names = np.frombuffer(json.dumps(dual.names).encode(), np.uint8)
    scalars = np.array([dual.bound, dual.slack])
    return {
        HISTORY: dict(vars(history)),
        DUAL: {"scalars": scalars, "names": names, "weights": dual.weights, "rates": dual.rates},
    }


def from_groups(groups: dict[str, Arrays]) -> State:
    """Inverse of `to_groups`; other groups are left alone.

    Raises:
        KeyError: A planner's groups are missing.
    """
    arrays = groups[DUAL]
    bound, slack = (float(x) for x in arrays["scalars"])
    names = tuple(json.loads(arrays["names"].tobytes()))
    return replace(
        State(PlayedRounds(**groups[HISTORY])), dual=Dual(bound, names, arrays["weights"], slack, arrays["rates"])
    )


def pack_values(told: Mapping[str, float]) -> Arrays:
    """Clients and a number of each as arrays, names as JSON bytes."""
    names = np.frombuffer(json.dumps(sorted(told)).encode(), np.uint8)
    return {"names": names, "values": np.array([told[name] for name in sorted(told)])}


def unpack_values(arrays: Arrays) -> dict[str, float]:
    """Inverse of `remembered`; empty where nothing was."""
    if "names" not in arrays:
        return {}
    return dict(zip(json.loads(arrays["names"].tobytes()), arrays["values"].tolist(), strict=True))
