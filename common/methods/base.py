"""Base of training methods: options of local training and of a server step, and their specs."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import Field

from common.options import Options, check_defaults
from common.tasks.options import Capabilities, TaskOptions


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
    """Weight p_k of a client in the mean: `uniform` is 1/K, `examples` its share of all training records.
    A client counts up to `secure-sums.most-examples` records."""

    def steps(self, phase: str) -> int:
        """Return the number of local steps of an exchange; a method may have a second exchange."""
        return self.local_steps

    def weight(self, examples: int, most: int) -> float:
        """Return the weight of a client that claims so many training records, of which `most` count."""
        return 1.0 if self.weighting == "uniform" else float(min(examples, most))

    def rate(self, parameter: str) -> float:
        """Return η of a parameter, by its name; `predictor.…` may have its own."""
        return self.lr_predictor if self.lr_predictor and parameter.startswith("predictor.") else self.lr


class MethodOptions(LocalTraining):
    """Options of every method, `[algorithm.<name>]`; a method adds options and may override defaults."""

    name: ClassVar[str]

    fixed_capabilities: ClassVar[Capabilities] = Capabilities()
    """Capabilities under any options, unless the method overrides `capabilities`."""

    def capabilities(self) -> Capabilities:
        """Return the capabilities under these options."""
        return self.fixed_capabilities

    def check(self, task: TaskOptions, model: str) -> None:
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

    def __post_init__(self) -> None:
        """Check the defaults, and that capabilities follow from them."""
        check_defaults(self.options)
        if not isinstance(found := self.options().capabilities(), Capabilities):
            raise TypeError(f"capabilities() returns a {type(found).__name__}, not Capabilities")

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


def choose_lowest(client: str, losses: Sequence[float]) -> int:
    """Return the number of the model of lowest loss; a hash of the client's name breaks ties."""
    best = [j for j, loss in enumerate(losses) if loss == min(losses)]
    return best[int.from_bytes(hashlib.sha256(client.encode()).digest()[:4]) % len(best)]
