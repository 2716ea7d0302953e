"""Interface of methods in release 0.1, for one release: strategies with state, adapted to `Method`."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from common.arrays import Arrays
from common.config.run import RunConfig
from common.contribution import Contribution
from common.methods.base import MethodOptions
from server.aggregation.replies import Reply
from server.round.method import Groups, Method, RoundContext
from server.round.state import RunState

REMEDY = "subclass server.api.Method, with update(at, state, model, total); RoundStrategy works until 0.3"

Collected = Contribution
"""Former name of the total of a round."""


@dataclass(frozen=True)
class RoundParts:
    """Arguments of a strategy of release 0.1."""

    config: RunConfig
    state: RunState


class RoundStrategy(ABC):
    """Base of strategies of release 0.1; a subclass implements `update(state, model, collected)`."""

    def __init__(self, run: RoundParts) -> None:
        self.config, self.state, self.capabilities = run.config, run.state, run.config.capabilities

    @property
    def next_round(self) -> tuple[int, int]:
        """Number of the next round, and the number of rounds."""
        return self.state.round + 1, self.config.rounds

    @abstractmethod
    def update(self, state: Groups, model: Arrays, collected: Contribution) -> tuple[Arrays, Groups]:
        """Return the next model and method state from the results of a round."""

    def broadcast(self, state: Groups, round_number: int) -> Arrays:
        """Return the further arrays for clients whose last aggregated reply was of that round."""
        return {}

    def diagnostics(self, state: Groups) -> dict[str, float]:
        """Return numbers of the server step that resulted in this state."""
        return {}


class _Adapted(Method):
    """Strategy of release 0.1 as a method."""

    def __init__(self, strategy: RoundStrategy) -> None:
        self._strategy = strategy

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        self._strategy.state = at.state
        return self._strategy.update(state, model, total)

    def broadcast(self, state: Groups, last: int) -> Arrays:
        return self._strategy.broadcast(state, last)

    def diagnostics(self, at: RoundContext, state: Groups) -> dict[str, float]:
        return self._strategy.diagnostics(state)


def adapt(build: Callable[..., Any], options: MethodOptions, config: RunConfig, state: RunState) -> Method | None:
    """Return the method of a strategy of release 0.1; None for builders of methods."""
    if not (isinstance(build, type) and issubclass(build, RoundStrategy)):
        return None
    warnings.warn(f"{build.__name__} is a RoundStrategy; {REMEDY}", DeprecationWarning, stacklevel=2)
    strategy: Callable[..., RoundStrategy] = build
    return _Adapted(strategy(options, RoundParts(config, state)))


def Replies(replies: Sequence[Reply], per_step: bool = True) -> Contribution:  # noqa: N802 - a class in release 0.1
    """Return the total of single replies."""
    total = Contribution(per_step=per_step, magnitude=True)
    for reply in replies:
        total.add(reply.member, reply.update, reply.gradient)
    return total.with_replies(replies)
