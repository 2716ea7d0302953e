"""Options of the rules task."""

from typing import ClassVar, Literal

from pydantic import Field

from common.privacy.options import PrivacyOptions
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

    count_offset: Literal["auto", True, False] = "auto"
    """Add an offset from summed counts (type × relation) to the logits.

    Without noise on the counts, every client's policy must set `allow-counts`. With helpers, the server learns their sum alone.
    `auto`: with helpers only, from the clients that allow it. With noise, counts are summed only if their noise is at most a
    hundredth of what the expected clients can add. They are used only if it leaves three quarters of their variance.
    """

    count_epsilon: float = Field(0.0, ge=0, allow_inf_nan=False)
    """ε of the helpers' noise on summed counts in runs whose updates have no noise; 0: none.

    In runs with noise, counts have a share of its ε, `privacy.count-share`.
    """

    count_delta: float = Field(1e-5, gt=0, lt=1)
    """δ of the noise on the counts."""

    hit_self_pairs: bool = False
    """True if the hit rate also ranks rules whose trigger and action are the same device."""

    @property
    def count_privacy(self) -> PrivacyOptions:
        """Noise that helpers add to the sum of counts; it covers all of a client's counts."""
        if not self.count_epsilon:
            return PrivacyOptions()
        return PrivacyOptions(unit="client", epsilon=self.count_epsilon, delta=self.count_delta, trust="helpers")
