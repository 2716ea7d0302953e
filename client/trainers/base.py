"""Client side of a method: the trainer protocol, with the inputs and results of local training."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol

from client.state import ClientMemory
from client.training.participant import Participant
from client.training.stacks import OwnRows, Tensors
from client.training.steps import Descent, GradientAndLoss, Moments
from common.arrays import Arrays
from common.errors import PackageError
from common.methods.base import MethodOptions, MethodSpec, MethodT
from common.methods.registry import METHODS
from common.registry import PACKAGE_REMEDY
from common.wire.messages import TrainRequest


@dataclass(frozen=True)
class Cohort:
    """Participants that train together, with their initial parameters and states.

    Args:
        participants: K participants.
        start: θ^c with each participant's private head, K × ….
        moments: Moments of the optimizer, K × ….
        control: Control variates, K × …; empty if the method has none.
        personalized: Personalized model of each participant; empty before its first round.
        heads: Private head of each participant; empty before its first round.
        private: Names of the parameters that stay with the clients.
        stays_stacked: True if the clients' states are stored stacked after this round.
        own_rows: Rows of short tables in `start`, `moments` and `control`; None if their tables are whole.
    """

    participants: Sequence[Participant]
    start: Tensors
    moments: Moments
    control: Tensors
    personalized: Sequence[Tensors]
    heads: Sequence[Tensors]
    private: Collection[str]
    stays_stacked: bool = False
    own_rows: OwnRows | None = None


@dataclass(frozen=True)
class CohortResult:
    """Result of a cohort's local training.

    Args:
        descent: Parameters, moments, gradients and losses, K × ….
        personalized: Personalized models, K × …; empty if the method has none.
    """

    descent: Descent
    personalized: Tensors


@dataclass(frozen=True)
class LocalResult:
    """Result of one client's local training, without its update.

    Args:
        gradient: s_k, sent with Δ_k; empty unless the method needs it.
        state: Client state by group, stored until the client's next round.
    """

    gradient: Tensors
    state: dict[str, Tensors]


class Trainer(Protocol):
    """Client side of a method; the default of each step is that of FedAvg."""

    options: MethodOptions

    shared_as: str
    """Prefix of the shared model's metrics if the client also has a personalized model."""

    samples_per_step: int
    """Number of samples of the step inputs per step; above 1, tensors of a step have a leading dimension
    of samples."""

    acts_on_numbers: bool = False
    """True if each hook treats all numbers alike; tables may then be short."""

    measures: bool = False
    """True if clients send `statistics` in place of an update, and the server solves for the model."""

    def objective(self, plain: GradientAndLoss) -> GradientAndLoss:
        """Return the gradient of the method's objective, computed from ∇L_k."""
        return plain

    def frozen_parameters(
        self, step: int, phase: str, private: Collection[str], names: Collection[str]
    ) -> Collection[str]:
        """Return the names of the parameters that do not change in a step.

        Steps count from 0; `private` stay with the clients.
        """
        return ()

    def pull(self, gradient: Tensors, params: Tensors, start: Tensors) -> Tensors:
        """Return the step direction of the personalized model, towards the global model `start`."""
        return gradient

    def template(self, task: str, request: TrainRequest) -> Arrays:
        """Return arrays of the names, shapes and dtypes of an upload, by default those of the model.

        They depend on the request and the options alone, never on data; those of statistics equal the server's
        `Method.template`.
        """
        return request.model

    def statistics(self, participant: Participant) -> Arrays:
        """Return the statistics of a client, without scalars; see `measures`. Empty if clients train.

        Tables may be rows with their ids, as `named_rows` returns them.
        """
        return {}

    def upload(self, displacement: Tensors) -> Tensors:
        """Return the update to send, computed from Δ_k = θ^c − θ_k."""
        return displacement

    def released_state(self, update: Arrays, gradient: Arrays, steps: int) -> dict[str, Tensors]:
        """Return the client state, by group, that must hold the released (clipped and noisy) values."""
        return {}

    def merge_state(self, state: dict[str, Tensors]) -> dict[str, Tensors]:
        """Return the groups of `conclude` in the form of one version; `settle` reads both forms."""
        return state

    def settle(self, state: Mapping[str, Tensors], is_counted: bool, shared: Tensors) -> Tensors:
        """Return the control variate of this round.

        Args:
            state: Client state after the last round of this client; empty before the first.
            is_counted: True if the server aggregated that round's reply.
            shared: Broadcast of the server about that round.
        """
        return {}

    def correct(self, gradient: Tensors, params: Tensors, start: Tensors, control: Tensors) -> Tensors:
        """Return the step direction g̃ of the shared model; all tensors are K × …."""
        return gradient

    def conclude(self, control: Tensors, displacement: Tensors, gradient: Tensors, steps: int) -> LocalResult:
        """Return the result of a client's round; `displacement` is Δ_k = θ^c − θ_k, `gradient` is s_k."""
        return LocalResult({}, {})

    def train_cohort(self, cohort: Cohort) -> CohortResult:
        """Train all participants for the same number of steps."""

    def personalize(self, participant: Participant) -> ClientMemory | None:
        """Return the client state with a model adapted from the shared one; None if the method has none."""
        return None


def require_forms(method: str, hook: str, returned: Tensors, like: Tensors) -> Tensors:
    """Return what a hook of a trainer has returned.

    Raises:
        PackageError: Its tensors lack a name of `like`, or have another shape.
    """
    if wrong := [name for name, t in like.items() if name not in returned or returned[name].shape != t.shape]:
        form = f"`{hook}` must return the names and shapes of its argument, and '{wrong[0]}' is another"
        raise PackageError(f"{METHODS.label(method)}: {form}; {PACKAGE_REMEDY}")
    return returned


@dataclass(frozen=True)
class ClientMethod(Generic[MethodT]):
    """Client side of a method."""

    spec: MethodSpec[MethodT]
    trainer: Callable[[MethodT], Trainer]


AnyClientMethod = ClientMethod[Any]
"""Client side of a method with options of any class."""
