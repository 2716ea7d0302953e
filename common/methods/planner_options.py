"""Options that all planners share."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from common.options import Options


class PlannerOptions(Options):
    """Options of every planner: the inner method and early stopping."""

    name: ClassVar[str]

    needs_noise: ClassVar[bool] = True
    """True if it plans a privacy budget, and the run must add noise; False if the run must not add noise."""

    learns: ClassVar[bool] = False
    """True if the plan depends on the reward of every round."""

    requires_rewards: ClassVar[bool] = False
    """True if a round without rewards ends the run."""

    fixed_rounds: ClassVar[bool] = False
    """True if its state depends on its options and the number of rounds; a resumed run keeps both."""

    inner: str = "fedavg"
    """Name of the method that trains and aggregates; its options are in the section `algorithm.<name>`."""

    stop: Literal["never", "plateau"] = "never"
    """`plateau` ends the run after `patience` rounds without gain; the remaining budget stays unspent."""

    patience: int = Field(10, ge=1)
    """Number of rounds without a gain after which `plateau` stops."""

    min_gain: float = Field(0.0, ge=0, allow_inf_nan=False)
    """Minimum gain of these rounds together, in the unit of the reward."""

    @field_validator("inner")
    @classmethod
    def _check_inner(cls, name: str) -> str:
        from common.methods.registry import METHODS  # the registry imports this module

        if name not in METHODS:
            raise ValueError(METHODS.describe_unknown(name))
        return name

    @property
    def observes_norm(self) -> bool:
        """True if the reward is the decrease of the noisy update's norm, which needs no metrics."""
        return False

    @property
    def context_size(self) -> int:
        """Number d of singular values in the context of a round."""
        return 0

    @property
    def by_rewards(self) -> bool:
        """True if the plan depends on metrics of clients."""
        return not self.observes_norm and (self.learns or self.stop == "plateau")
