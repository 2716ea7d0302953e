"""Definition of a method at the client: its trainer, and what a trainer is given and returns."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol

from client.stacked_tensors import Tensors
from client.state import ClientMemory
from client.trainers.gradient_descent import Descent, GradientAndLoss
from client.trainers.optimizers import Moments
from client.training.participant import Participant
from common.arrays import Arrays
from common.methods.spec import MethodOptions, MethodSpec, MethodT


@dataclass(frozen=True)
class Cohort:
    """Participants that train together, and where each starts.

    Args:
        participants: K of them.
        start: θ^c with each participant's private head, K × ….
        moments: Moments of the optimizer, K × ….
        control: Control variates, K × …, or nothing.
        own: Personalized models of the round before; empty at first.
        heads: Private heads of the round before; empty at first.
        private: Names of the parameters that stay with the clients.
    """

    participants: Sequence[Participant]
    start: Tensors
    moments: Moments
    control: Tensors
    own: Sequence[Tensors]
    heads: Sequence[Tensors]
    private: Collection[str]


@dataclass(frozen=True)
class CohortResult:
    """Result of a cohort's local training.

    Args:
        descent: Parameters, moments, gradients and losses, stacked.
        own: Personalized models, stacked; empty where the method has none.
    """

    descent: Descent
    own: Tensors


@dataclass(frozen=True)
class LocalResult:
    """Result of one client's local training beside its update.

    Args:
        gradient: s_k, uploaded beside Δ_k; empty unless the method needs it.
        state: Client state by group, stored until the client's next round.
    """

    gradient: Tensors
    state: dict[str, Tensors]


class Trainer(Protocol):
    """Client side of a method."""

    options: MethodOptions

    shared_as: str
    """Prefix of the shared model's metrics where a client also has a personalized one."""

    draws: int
    """Number of samples of the step inputs in one step; tensors of several samples carry them in front."""

    def objective(self, plain: GradientAndLoss) -> GradientAndLoss:
        """Return the direction of a step, made of ∇L_k."""

    def frozen(self, step: int, phase: str, private: Collection[str], names: Collection[str]) -> Collection[str]:
        """Return the parameters that a step does not move."""

    def pull(self, gradient: Tensors, params: Tensors, start: Tensors) -> Tensors:
        """Return the direction of the model that descends beside the global one, `start`."""

    def upload(self, displacement: Tensors) -> Tensors:
        """Return the part of Δ_k = θ^c − θ_k that is sent."""

    def released(self, update: Arrays, gradient: Arrays, steps: int) -> dict[str, Tensors]:
        """Return client state by group that must hold the released values, with clipping and noise."""

    def settle(self, state: dict[str, Tensors], counted: bool, shared: Tensors) -> Tensors:
        """Return the control variate to train with.

        Args:
            state: Client state after the last round of this client; empty before the first.
            counted: True if the server counted that round's reply.
            shared: Broadcast of the server about that round.
        """

    def correct(self, gradient: Tensors, params: Tensors, start: Tensors, control: Tensors) -> Tensors:
        """Return the direction to step along."""

    def conclude(self, control: Tensors, displacement: Tensors, gradient: Tensors, steps: int) -> LocalResult:
        """Close a client's round; `displacement` is Δ_k = θ^c − θ_k, `gradient` is s_k."""

    def train_cohort(self, cohort: Cohort) -> CohortResult:
        """Train all participants for the same number of steps."""

    def personalize(self, participant: Participant) -> ClientMemory | None:
        """Return the client state with a model adapted from the shared one; None if the method adapts none."""


@dataclass(frozen=True)
class ClientMethod(Generic[MethodT]):
    """A method at the client.

    Args:
        spec: What server and clients agree on.
        trainer: Build the trainer from the method's options.
    """

    spec: MethodSpec[MethodT]
    trainer: Callable[[MethodT], Trainer]


AnyClientMethod = ClientMethod[Any]
"""A method of which only the name is known."""
