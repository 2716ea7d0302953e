"""The rules task: what server and clients agree on about IF-THEN rules of smart homes."""

from typing import Literal

from pydantic import Field

from common.tasks.spec import TaskOptions


class RulesOptions(TaskOptions):
    """`[tasks.rules]`."""

    negatives: int = Field(5, ge=1)
    """Pools of sampled negatives a client trains on, weighing together as much as one (the paper's number)."""

    test_share: float = Field(0.2, gt=0, lt=1)
    """A home's first floor(share · rules) shuffled rules are its test rules."""

    validation_share: float = Field(0.0, ge=0, lt=1)
    """Share of the rules left after the test rules that is held out for choosing rates and rounds."""

    small_users: Literal["train_only", "drop"] = "train_only"
    """Homes with too few rules for a test rule: train on all they have, or leave them out (the authors' demo)."""

    hidden: int = Field(16, ge=1)
    """Width of both GraphSAGE layers."""

    dropout: float = Field(0.5, ge=0, lt=1)
    """Share of the first layer's outputs dropped in training."""

    pred_hidden: int = Field(0, ge=0)
    """Width of the paper's predictor; 0 is the number of relations (the paper's letter)."""

    count_offset: bool = False
    """Add an offset from summed counts (type × relation) to the scores; needs the clients' policies to allow counts."""

    hit_self_pairs: bool = False
    """Whether the hit rate also ranks rules whose trigger and action are the same device."""
