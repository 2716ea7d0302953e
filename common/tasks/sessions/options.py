"""Options of the sessions task."""

from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field

from common.options import Scalar
from common.tasks.options import TaskOptions
from common.tasks.sessions.vocabulary import Items
from common.tasks.vocabulary import Vocabulary


class SessionsOptions(TaskOptions):
    """Options `tasks.sessions.*`."""

    gathered_items: ClassVar[int] = 2_000
    """Minimum number of items with which `loss=auto` gathers rows, the smallest at which it was compared."""

    alone: ClassVar[dict[str, Scalar]] = {"loss": "full"}

    network: Literal["srgnn", "tagnn", "tagnn_concat"] = "srgnn"
    """Network of the model.

    `srgnn`: SR-GNN; `tagnn`: TAGNN as in its authors' code; `tagnn_concat`: TAGNN as in the paper.
    """

    hidden: int = Field(48, ge=1)
    """Width d of the item embedding (the papers: 100)."""

    steps: int = Field(1, ge=1)
    """Number of steps of the gated graph network."""

    max_length: int = Field(20, ge=2)
    """Maximum number of clicks of a session that the network reads: the last ones."""

    loss: Literal["auto", "full", "sampled"] = "auto"
    """Items in the softmax of a local step.

    `full`: all items; every row of the item table changes. `sampled`: the client's own items and `negatives` others,
    weighted so that their sum estimates the sum over all items. Updates then hold these rows only, and name them. `auto`:
    `sampled` for at least 2,000 items, without noise and helpers, if method and options support it; else `full`.
    """

    negatives: int = Field(256, ge=1)
    """Number of items that a client draws in each round under `loss=sampled`.

    They are drawn uniformly from the items that its sessions do not have.
    """

    test_share: float = Field(0.2, gt=0, lt=1)
    """Share of a client's sessions in the test split, unless the data name the test sessions."""

    blend_share: float = Field(0.1, gt=0, lt=1)
    """Share of the training sessions on which the default model's blend weights are trained."""

    @cached_property
    def gathers_rows(self) -> str:
        """Setting of the loss, if it is `sampled`."""
        return "loss=sampled" if self.loss == "sampled" else ""

    def resolve_rows(self, vocabulary: Vocabulary, *, is_possible: bool) -> Self:
        """Return these options with `loss=auto` resolved; see `TaskOptions.resolve_rows`."""
        if self.loss != "auto":
            return self
        many = isinstance(vocabulary, Items) and len(vocabulary.items) >= self.gathered_items
        return self.model_copy(update={"loss": "sampled" if many and is_possible else "full"})
