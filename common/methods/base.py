"""Base of training methods: options of local training, of a server step and of clusters; capabilities."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import Field

from common.options import Options

if TYPE_CHECKING:
    from common.tasks.spec import ModelVariant, TaskOptions


class LocalTraining(Options):
    """Options of local gradient descent, common to all methods."""

    optimizer: Literal["sgd", "adam"] = "sgd"
    """Optimizer of the local steps."""

    lr: float = Field(0.3, gt=0)
    """Local step size η."""

    lr_predictor: float = Field(0.0, ge=0)
    """Local step size η of the predictor φ; 0: the same as `lr`."""

    local_steps: int = Field(3, ge=1)
    """Number τ of local steps per round, each on all data of the client."""

    clip_norm: float = Field(0.0, ge=0)
    """Maximum L2 norm of a client's gradient in one step; 0: no clipping."""

    moments: Literal["reset", "persist"] = "persist"
    """Adam's moments between rounds: `reset` to zero, or `persist` in the client state."""

    weighting: Literal["uniform", "examples"] = "uniform"
    """Weight p_k of a client in the server's mean: `uniform` is 1/K; `examples` is its share of all
    training records."""

    def steps(self, phase: str) -> int:
        """Return the number of local steps of an exchange; a method may have a second exchange."""
        return self.local_steps

    def weight(self, examples: int) -> float:
        """Return the weight of a client with so many training records."""
        return 1.0 if self.weighting == "uniform" else float(examples)

    def rate(self, parameter: str) -> float:
        """Return η of a parameter, by its name; `predictor.…` may have its own."""
        return self.lr_predictor if self.lr_predictor and parameter.startswith("predictor.") else self.lr


PrivateLayers = Literal["none", "head", "all"]
OwnModel = Literal["none", "trained", "beside", "adapted"]


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a method under its options; shared code uses no other property of a method.

    Args:
        tasks: Supported tasks; empty for all.
        tasks_reason: Reason of that limit, for the error.
        record_dp: Reason why DP-SGD does not cover the method; empty if it does.
        needs_gradient: True if replies contain the mean gradient s_k.
        needs_magnitude: True if the server needs the mean of |Δ_k|; secure sums then carry it as a second block.
        per_step: True if means are of updates per local step; False if each update solves a problem of its own.
        private_layers: Parameters that stay with a client: none, the task's private head, or all.
        shared_head: Parameters of the private head that are sent nevertheless.
        own_model: Personalized model of a client. `none`: no such model. `trained`: the model it trained. `beside`: a second
            model, trained in parallel with the shared one. `adapted`: adapted from the shared one at each evaluation.
        row_wise: True if the server step treats table rows alike and row-sparse replies suffice.
        sum_only: True if the server needs weighted sums alone.
        replies_reason: What the server needs of single replies otherwise, for the error.
        clusters: Number K of models of which, in secure sums, each client itself chooses one; 0 if there is one model, or if
            the server needs single replies.
        choice_rounds: Number of rounds for which such a choice holds.
        extra_releases: Number of further data-dependent replies per round, such as cluster assignments; secure sums have none.
        moves_all_rows: True if a local step moves rows of tables whose gradient is zero.
    """

    tasks: frozenset[str] = frozenset()
    tasks_reason: str = ""
    record_dp: str = ""
    needs_gradient: bool = False
    needs_magnitude: bool = False
    per_step: bool = True
    private_layers: PrivateLayers = "none"
    shared_head: frozenset[str] = frozenset()
    own_model: OwnModel = "none"
    row_wise: bool = False
    sum_only: bool = False
    replies_reason: str = "needs the replies of single clients"
    clusters: int = 0
    choice_rounds: int = 1
    extra_releases: int = 0
    moves_all_rows: bool = False


class MethodOptions(LocalTraining):
    """Options of every method, `[algorithm.<name>]`; a method adds options and may override defaults."""

    name: ClassVar[str]

    def capabilities(self) -> Capabilities:
        """Return the capabilities under these options."""
        return Capabilities()

    def check(self, task: "TaskOptions", model: "ModelVariant") -> None:
        """Check that the method supports the task's options and the model variant.

        Raises:
            ValueError: The combination is not supported.
        """

    def uncovered(self) -> tuple[str, ...]:
        """Return the uncovered channels under these options, for the privacy statement."""
        return ()


MethodT = TypeVar("MethodT", bound=MethodOptions)


@dataclass(frozen=True)
class MethodSpec(Generic[MethodT]):
    """Method definition shared by server and clients; importing it must not import torch.

    Args:
        options: Class of `[algorithm.<name>]`; its `name` is the method's name.
        summary: One line for `fedloom methods` and help.
        paper: Reference, such as an arXiv number.
        default_task: Task that `--method NAME` trains by default; empty for the first task.
    """

    options: type[MethodT]
    summary: str
    paper: str = ""
    default_task: str = ""

    @property
    def name(self) -> str:
        """Name of the method in options and files."""
        return self.options.name


AnyMethod = MethodSpec[Any]
"""Method with options of any class."""


class ServerStep(MethodOptions):
    """Options of the server step size ηₛ."""

    server_lr: float = Field(1.0, gt=0)
    """Server step size ηₛ."""

    cooldown: float = Field(0.0, ge=0, le=1)
    """Share of the rounds, at the end of the run, over which ηₛ decreases linearly to 0. With few data per
    parameter, a constant step overfits at the end."""

    def eta(self, number: int, rounds: int) -> float:
        """Return ηₛ of round `number`, from 1 to `rounds`."""
        cooling = self.cooldown * rounds
        return self.server_lr * min(1.0, (rounds - number + 1) / cooling) if cooling else self.server_lr
