"""Definition of a method, as far as server and clients must agree on it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from common.methods.local_training import LocalTraining

if TYPE_CHECKING:
    from common.tasks.spec import ModelVariant, TaskOptions

PrivateLayers = Literal["none", "head", "all"]
OwnModel = Literal["none", "trained", "beside", "adapted"]


@dataclass(frozen=True)
class Capabilities:
    """Needs and limits of a method under its options; shared code asks nothing else about a method.

    Args:
        tasks: Tasks that it trains; empty for any.
        tasks_reason: Reason of that limit, for the error.
        record_dp: Reason why DP-SGD does not cover it; empty if it does.
        needs_gradient: True if replies carry the mean gradient s_k.
        private_layers: Parameters that stay with a client: none, the task's private head, or all.
        shared_head: Parameters of the head that are sent all the same.
        own_model: Model that a client keeps: none; the one it trained; one that descends beside the shared one;
            or one adapted from the shared one whenever it is evaluated.
        row_wise: True if the server step treats table rows alike, so that row-sparse replies suffice.
        sum_only: True if the server needs weighted sums alone.
        extra_releases: Further data-dependent replies per round, such as cluster assignments.
        plaintext: Policy keys that must be opted in.
        shared_windows: Training windows that a client sends in plaintext, at most.
    """

    tasks: frozenset[str] = frozenset()
    tasks_reason: str = ""
    record_dp: str = ""
    needs_gradient: bool = False
    private_layers: PrivateLayers = "none"
    shared_head: frozenset[str] = frozenset()
    own_model: OwnModel = "none"
    row_wise: bool = False
    sum_only: bool = False
    extra_releases: int = 0
    plaintext: frozenset[str] = frozenset()
    shared_windows: int = 0


class MethodOptions(LocalTraining):
    """Options of every method, `[algorithm.<name>]`; a method adds its own and may override a default."""

    name: ClassVar[str]

    def capabilities(self) -> Capabilities:
        """Return needs and limits under these options."""
        return Capabilities()

    def check(self, task: "TaskOptions", model: "ModelVariant") -> None:
        """Accept the options of the task.

        Raises:
            ValueError: The combination cannot work.
        """

    def uncovered(self) -> tuple[str, ...]:
        """Return channels that no privacy claim covers under these options, for the statement."""
        return ()


MethodT = TypeVar("MethodT", bound=MethodOptions)


@dataclass(frozen=True)
class MethodSpec(Generic[MethodT]):
    """A method, as far as server and clients must agree on it. Importing it must not import torch.

    Args:
        options: Class of `[algorithm.<name>]`; its `name` is the method's.
        summary: One line for `fedloom methods` and help.
        paper: Reference, such as an arXiv number.
        default_task: Task that `--method NAME` trains where no task is named; empty for the first one.
    """

    options: type[MethodT]
    summary: str
    paper: str = ""
    default_task: str = ""

    @property
    def name(self) -> str:
        """Name in options and files."""
        return self.options.name


AnyMethod = MethodSpec[Any]
"""A method of which only the name is known."""
