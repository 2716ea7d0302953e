"""Options of a task, and the capabilities of a method that they are checked against."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field

from common.options import Options, Scalar
from common.tasks.vocabulary import Vocabulary

VARIANTS = ("default", "paper")
"""`default`: the best model measured under the same federation; `paper`: the paper's model."""

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
        closed_form: True if the server solves for the task's closed form, one sum a round, and nothing is trained.
        min_count: Smallest number of clients with a row of statistics; rows of fewer are zero. 0: no limit.
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
    closed_form: bool = False
    min_count: int = 0


@dataclass(frozen=True)
class NamedRows:
    """Table whose row ids clients send in plaintext.

    Args:
        table: Name of the parameter.
        pseudo: Number of further random rows that a client sends, to conceal its own.
    """

    table: str
    pseudo: int


class TaskOptions(Options):
    """Options of every task, `[tasks.<name>]`; a task adds its own and may override a default."""

    alone: ClassVar[dict[str, Scalar]] = {}
    """Values of options in the training of each client alone, with which a run is compared."""

    split_options: ClassVar[tuple[str, ...]] = ("test_share", "validation_share")
    """Names of the options that decide on held-out data; runs with equal ones are comparable."""

    test_share: float = Field(0.2, gt=0, lt=1)
    """Share of a client's records in the test split."""

    validation_share: float = Field(0.0, ge=0, lt=1)
    """Share of the remaining records in the validation split, for tuning and planners."""

    @cached_property
    def named_rows(self) -> NamedRows | None:
        """Table whose row ids clients send in plaintext; None if uploads are dense."""
        return None

    @cached_property
    def gathers_rows(self) -> str:
        """Setting under which local steps work on rows that the client chooses; empty if none."""
        return ""

    def resolve_rows(self, vocabulary: Vocabulary, *, is_possible: bool) -> Self:
        """Return these options with `gathers_rows` decided; it is empty unless `is_possible`."""
        return self

    def check(self, model: str, method: str, capabilities: Capabilities) -> None:
        """Accept the combination of model and method.

        Raises:
            ValueError: The combination is not supported.
        """

    def not_sent(self) -> tuple[str, ...]:
        """Return uncovered channels of methods that do not exist under these options."""
        return ()

    def uncovered(self) -> tuple[str, ...]:
        """Return channels that no privacy claim covers under these options, for the statement."""
        return ()
