"""The server's whole memory of a run as one frozen value, which a checkpoint writes and `--resume` reads."""

from dataclasses import dataclass, field, replace

from common.arrays import Arrays
from server.aggregation.optimizers import OptimizerState

PLAN = "planner_"
"""What the names of a planner's groups start with."""


@dataclass(frozen=True)
class RunState:
    """After `round` rounds."""

    round: int
    model: Arrays
    memory: OptimizerState = field(default_factory=dict)
    """What the method keeps, by group."""
    statics: Arrays = field(default_factory=dict)
    """Untrained inputs of the model, such as summed counts."""
    counted: dict[str, int] = field(default_factory=dict)
    """Client -> last round in which its reply entered the mean."""
    plan: OptimizerState = field(default_factory=dict)
    """What a planner of budgets keeps, by group."""

    def next(self, model: Arrays, memory: OptimizerState, clients: list[str]) -> "RunState":
        """The state after one more round in which these clients counted."""
        number = self.round + 1
        return replace(
            self, round=number, model=model, memory=memory, counted={**self.counted, **dict.fromkeys(clients, number)}
        )


@dataclass(frozen=True)
class Trained:
    """A finished training step of a round, for the journal."""

    state: RunState
    loss: float
    rejected: dict[str, str]
    """Client -> why its reply was left out."""
    server: dict[str, float] = field(default_factory=dict)
    """The strategy's own numbers."""
    groups: dict[str, int] = field(default_factory=dict)
    """Client -> cluster, in methods that keep several models."""
