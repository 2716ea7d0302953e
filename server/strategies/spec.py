"""Server side of a method: its strategy, and the parts of every strategy."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from common.config.run import RunConfig
from common.methods.spec import MethodSpec, MethodT
from server.enrolment import Enrolment
from server.evaluation import Evaluation
from server.secure.protocol import SumProtocol
from server.state import RunState, Trained

if TYPE_CHECKING:
    from server.strategies.round import RoundStrategy


@dataclass(frozen=True)
class RoundParts:
    """Parts of every strategy.

    Args:
        config: Configuration of the run.
        state: State of the run; replaced after each round, never modified.
        enrolment: Clients of the run.
        on_trained: Callback after each training step.
        on_evaluated: Callback after each evaluation.
        reason_to_stop: Reason why the run ends before the next round; empty if it continues.
        find_explosion: Reason why the step before an evaluation is taken back; empty if it stays.
        sums: Protocol of secure sums; None if the server sees single replies.
        on_round: Callback before each round, with the state after the last one.
        folder: Folder for replies beyond what stays in memory; None: all stay there.
    """

    config: RunConfig
    state: RunState
    enrolment: Enrolment
    on_trained: Callable[[Trained], None] = lambda trained: None
    on_evaluated: Callable[[int, Evaluation], None] = lambda number, evaluation: None
    reason_to_stop: Callable[[], str] = lambda: ""
    find_explosion: Callable[[Evaluation], str] = lambda evaluation: ""
    sums: SumProtocol | None = None
    on_round: Callable[[RunState], None] = lambda state: None
    folder: Path | None = None


@dataclass(frozen=True)
class ServerMethod(Generic[MethodT]):
    """Server side of a method.

    Args:
        spec: Method definition shared by server and clients.
        strategy: Builder of the strategy, from the method's options.
    """

    spec: MethodSpec[MethodT]
    strategy: Callable[[MethodT, RoundParts], "RoundStrategy"]


AnyServerMethod = ServerMethod[Any]
"""Server side of a method with options of any class."""
