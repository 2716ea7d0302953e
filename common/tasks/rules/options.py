"""Options of the rules task."""

from typing import ClassVar, Literal

from pydantic import Field

from common.tasks.options import TaskOptions


class RulesOptions(TaskOptions):
    """Options `tasks.rules.*`."""

    split_options: ClassVar[tuple[str, ...]] = (*TaskOptions.split_options, "small_users", "hit_self_pairs")

    negatives: int = Field(5, ge=1)
    """Number of pools of sampled negatives for training.

    Together they weigh as much as one pool (the paper's number).
    """

    test_share: float = Field(0.2, gt=0, lt=1)
    """Share of a home's rules in the test split: the first floor(share · rules) after shuffling."""

    small_users: Literal["train_only", "drop"] = "train_only"
    """Treatment of homes with too few rules for a test rule.

    `train_only`: train on all their rules; `drop`: leave the home out, as the authors' demo does.
    """

    hidden: int = Field(16, ge=1)
    """Width of both GraphSAGE layers."""

    dropout: float = Field(0.5, ge=0, lt=1)
    """Dropout rate of the first layer in training."""

    pred_hidden: int = Field(0, ge=0)
    """Width of the paper's predictor; 0: the number of relations, as in the paper."""

    hit_self_pairs: bool = False
    """True if the hit rate also ranks rules whose trigger and action are the same device."""
