"""The sessions task: what server and clients agree on about the next item of a session."""

from typing import Literal

from pydantic import Field

from common.tasks.spec import TaskOptions


class SessionsOptions(TaskOptions):
    """`[tasks.sessions]`."""

    network: Literal["srgnn", "tagnn", "tagnn_concat"] = "srgnn"
    """SR-GNN; TAGNN, which attends to the session anew for each candidate, in its authors' code's form or the paper's."""

    hidden: int = Field(48, ge=1)
    """d, width of the item embedding; the papers' is 100."""

    steps: int = Field(1, ge=1)
    """Steps of the gated graph network."""

    max_length: int = Field(20, ge=2)
    """Clicks of a session that count: the last ones."""

    test_share: float = Field(0.2, gt=0, lt=1)
    """Share of a client's sessions held out for testing, where the data do not say which."""

    validation_share: float = Field(0.0, ge=0, lt=1)
    """Share of the training sessions held out for choosing rates and rounds."""

    blend_share: float = Field(0.1, gt=0, lt=1)
    """Share of the training sessions that the default model's blend with a person's own history is learnt on."""

    count_offset: bool = False
    """Add summed sequential-rule counts to the scores; needs the clients' policies to allow counts."""
