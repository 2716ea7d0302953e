"""Server side of a method: pure functions of the round's total, as the papers write them.

A method has no state of its own. `Round` passes its stored groups in and keeps what it returns.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol

from flwr.app import Message

from common.arrays import Arrays
from common.config.run import RunConfig
from common.contribution import Contribution
from common.methods.base import MethodSpec, MethodT
from common.tasks.options import Capabilities
from common.tasks.registry import TASKS
from common.wire.messages import TRAIN, Payload
from server.aggregation.optimizers import OptimizerState
from server.aggregation.replies import Reply
from server.clients.enrolment import Enrolment
from server.clients.roster import EnrolledClient
from server.round.state import RunState

log = logging.getLogger("fedloom.server")

Groups = OptimizerState
"""State of a method, by group."""


@dataclass(frozen=True)
class RoundContext:
    """Facts about the round that is made.

    Args:
        config: Configuration of the run.
        state: State after the last round.
        cost: Privacy cost of each reply of a client; 0 without noise.
        clip: Factor on the run's clip norm.
    """

    config: RunConfig
    state: RunState
    cost: float = 0.0
    clip: float = 1.0

    @cached_property
    def number(self) -> int:
        """Number of the round, from 1."""
        return self.state.round + 1

    @cached_property
    def rounds(self) -> int:
        """Number of rounds of the run."""
        return self.config.rounds

    @cached_property
    def capabilities(self) -> Capabilities:
        """Capabilities of the method under its options."""
        return self.config.capabilities

    @cached_property
    def counted(self) -> Mapping[str, int]:
        """Client -> last round of this phase in which its reply was aggregated."""
        return {name: number for name, number in self.state.counted.items() if number > self.config.first_rounds}

    @cached_property
    def noise(self) -> str:
        """Name of the round's noise and phase, on which the length of an update depends."""
        return f"{self.cost:.6g} {self.clip:.6g}" + (f" after {self.config.first}" if self.config.first else "")

    @cached_property
    def is_summed(self) -> bool:
        """True if the server receives secure sums alone."""
        return self.config.privacy.resolved_trust == "helpers"


Payloads = Callable[[EnrolledClient], Payload]
"""Payload for each client; equal payloads are one object and are encoded once."""


@dataclass(frozen=True)
class Talk:
    """Further messages of a round, for methods that ask clients more than one training."""

    at: RoundContext
    intake: "TakesReplies"
    enrolment: Enrolment
    send: Callable[[Sequence[EnrolledClient], str, Payloads], Iterable[Message]]

    def train(self, clients: Sequence[EnrolledClient], payloads: Payloads, phase: str) -> list[Reply]:
        """Send the training requests of a further phase; return the usable replies, made robust."""
        usable, rejected = self.intake.take_all(self.at, self.send(clients, TRAIN, payloads), phase)
        for name, reason in sorted(rejected.items()):
            log.warning("%s: left out of the %s steps: %s", name, phase, reason)
        return usable


class TakesReplies(Protocol):
    """Intake, as far as further phases of a round need it."""

    def take_all(self, at: RoundContext, messages: Iterable[Message], phase: str) -> tuple[list[Reply], dict[str, str]]:
        """Return the usable replies of a further phase, and client -> reason for the others."""


class Assignment(Protocol):
    """Choice of a model for each client; the defaults give all clients one model."""

    def start(self, state: RunState, config: RunConfig) -> RunState:
        """Return the state before the first round of a process."""
        return state

    def model_for(self, at: RoundContext, client: str) -> Arrays:
        """Return the model that a client trains or evaluates."""
        return at.state.model

    def statics_for(self, at: RoundContext, client: str) -> Arrays:
        """Return the untrained inputs of the client's model; equal ones share an encoded request."""
        return at.state.statics

    def group_of(self, state: RunState, client: str) -> int:
        """Return the number of the client's model; clients of one group share an encoded request."""
        return 0

    def groups(self, state: RunState) -> dict[str, int]:
        """Return client -> number of its model, for the report."""
        return {}

    def prepare(
        self, at: RoundContext, clients: Mapping[str, EnrolledClient], talk: Talk, *, training: bool
    ) -> RunState:
        """Return the state after further messages before clients train, or evaluate if not `training`."""
        return at.state

    def refine(self, at: RoundContext, model: Arrays, clients: Sequence[str], talk: Talk) -> Arrays:
        """Return the model after further messages to the clients of the round."""
        return model


class OneModel(Assignment):
    """One model for all clients."""


ONE_MODEL = OneModel()


class Method(Protocol):
    """Server step of a method; `server/methods/` has one file for each."""

    assignment: Assignment = ONE_MODEL

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return the next model and the method's state from the total of a round.

        Args:
            at: The round.
            state: Stored groups of the method.
            model: Model before the round, without parameters that stay with clients.
            total: Sums over the clients of the round.
        """

    def step(
        self, at: RoundContext, state: Groups, model: Arrays, total: Contribution
    ) -> tuple[Arrays, Groups, Arrays]:
        """Return what `update` does and the untrained inputs of the model, by default those before the round."""
        return *self.update(at, state, model, total), at.state.statics

    def check(self, at: RoundContext) -> None:
        """Check before clients are asked that the round can be done.

        Raises:
            DataError: It cannot, for instance for lack of memory.
        """
        return

    def template(self, at: RoundContext, model: Arrays) -> Arrays:
        """Return arrays of the form of a client's upload, by default the shared part of its model."""
        private = TASKS[at.config.task].private(model, at.capabilities)
        return {name: a for name, a in model.items() if name not in private}

    def broadcast(self, state: Groups, last: int) -> Arrays:
        """Return further arrays for clients whose last aggregated reply was of round `last`."""
        return {}

    def diagnostics(self, at: RoundContext, state: Groups) -> dict[str, float]:
        """Return numbers of the server step that resulted in this state, for the journal."""
        return {}


@dataclass(frozen=True)
class ServerMethod(Generic[MethodT]):
    """Server side of a method.

    Args:
        spec: Method definition shared by server and clients.
        build: Builder of the server step, from the method's options.
    """

    spec: MethodSpec[MethodT]
    build: Callable[[MethodT], Method]


def check_step(model: Arrays, updated: Arrays, state: Groups) -> None:
    """Check what `Method.update` returns for a model.

    Raises:
        ValueError: An array of the model has another shape or dtype, or one of the state has no numbers.
    """
    forms = {name: (array.shape, array.dtype) for name, array in model.items()}
    if wrong := [name for name, array in updated.items() if (array.shape, array.dtype) != forms.get(name)]:
        raise ValueError(f"`update` returns array '{wrong[0]}', whose shape or dtype is another than in `model`")
    if odd := [n for arrays in state.values() for n, array in arrays.items() if array.dtype.kind not in "biuf"]:
        raise ValueError(f"`update` returns a state whose array '{odd[0]}' holds no numbers")


AnyServerMethod = ServerMethod[Any]
"""Server side of a method with options of any class."""
