"""State of a run on the server as one frozen value, which a checkpoint stores."""

from dataclasses import dataclass, field, replace

from common.arrays import Arrays
from common.tasks.options import Capabilities
from server.aggregation.lengths import ReplyMemory
from server.aggregation.optimizers import OptimizerState

PLAN_PREFIX = "planner_"
"""Prefix of the names of a planner's groups."""

SUMS, PARENT_SUMS = "sums", "parent_sums"
"""Groups of closed forms: named sums of a run, and weighted ones of the run from which it started."""


@dataclass(frozen=True)
class RunState:
    """State after `round` rounds."""

    round: int
    model: Arrays
    memory: OptimizerState = field(default_factory=dict)
    """State of the method, by group."""
    statics: Arrays = field(default_factory=dict)
    """Untrained inputs of the model, such as summed counts."""
    counted: dict[str, int] = field(default_factory=dict)
    """Client -> last round in which its reply was aggregated."""
    plan: OptimizerState = field(default_factory=dict)
    """State of a budget planner, by group."""
    reply_memory: ReplyMemory = field(default_factory=ReplyMemory)
    """Memory of the checks on replies."""

    def memory_of(self, capabilities: Capabilities) -> OptimizerState:
        """Return the state of a method with these capabilities; sums are that of a closed form."""
        return {n: group for n, group in self.memory.items() if capabilities.closed_form or n != SUMS}

    def next(self, model: Arrays, memory: OptimizerState, clients: list[str]) -> "RunState":
        """Return the state after one more round, in which the replies of these clients were aggregated."""
        number = self.round + 1
        return replace(
            self, round=number, model=model, memory=memory, counted={**self.counted, **dict.fromkeys(clients, number)}
        )


@dataclass(frozen=True)
class Trained:
    """Completed training step of a round, for the journal."""

    state: RunState
    loss: float
    rejected: dict[str, str]
    """Client -> reason why its reply was left out."""
    server: dict[str, float] = field(default_factory=dict)
    """Numbers of the strategy."""
    groups: dict[str, int] = field(default_factory=dict)
    """Client -> cluster, in methods with several models."""
    excluded: dict[str, str] = field(default_factory=dict)
    """Client -> reason why the round was repeated without it."""
    shortened: dict[str, str] = field(default_factory=dict)
    """Client -> length of its reply, which counts at the typical length."""
