"""Definition of a method at the server: its strategy, and what a strategy is made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from common.config.run import RunConfig
from common.methods.spec import MethodSpec, MethodT
from server.enrolment import Enrolment
from server.evaluation import Evaluation
from server.state import RunState, Trained

if TYPE_CHECKING:
    from server.strategies.round import RoundStrategy


@dataclass(frozen=True)
class RoundParts:
    """Parts of every strategy.

    Args:
        config: Configuration of the run.
        state: State of the run; replaced, never changed, after each round.
        enrolment: Clients of the run.
        on_trained: Called after each training step.
        on_evaluated: Called after each evaluation.
    """

    config: RunConfig
    state: RunState
    enrolment: Enrolment
    on_trained: Callable[[Trained], None] = lambda trained: None
    on_evaluated: Callable[[int, Evaluation], None] = lambda number, evaluation: None


@dataclass(frozen=True)
class ServerMethod(Generic[MethodT]):
    """A method at the server.

    Args:
        spec: What server and clients agree on.
        strategy: Build the strategy from the method's options.
    """

    spec: MethodSpec[MethodT]
    strategy: Callable[[MethodT, RoundParts], "RoundStrategy"]


AnyServerMethod = ServerMethod[Any]
"""A method of which only the name is known."""
