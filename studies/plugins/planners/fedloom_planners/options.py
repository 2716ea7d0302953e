"""Options of the planners that are compared with BGTplanner."""

from typing import ClassVar, Self

from pydantic import Field, model_validator

from common.api import ArmOptions, PlannerOptions, PlannerSpec


class RandomArm(ArmOptions):
    """Control of BGTplanner: the same arms, drawn at random."""

    name: ClassVar[str] = "random_arm"


class FixedArm(ArmOptions):
    """Control of BGTplanner: one of its arms in every round."""

    name: ClassVar[str] = "fixed_arm"

    arm: int = Field(0, ge=0)
    """Number of the arm, 0 for the cheapest; where a client cannot pay it, the next cheaper one."""

    @model_validator(mode="after")
    def _check_arm(self) -> Self:
        if self.arm >= self.arms:
            raise ValueError(f"arm {self.arm} is none of {self.arms} arms; set arm to {self.arms - 1} at most")
        return self


class ADPML(PlannerOptions):
    """ADPML: costs grow by a constant factor per round and sum to B; our own parameters."""

    name: ClassVar[str] = "adpml"

    growth: float = Field(4.0, ge=1, allow_inf_nan=False)
    """Ratio ε_max/ε_min of the last round's cost to the first round's."""


class ADAP(PlannerOptions):
    """ADAP with our own parameters: less noise after decreases of the loss, a clip that follows updates."""

    name: ClassVar[str] = "adap"

    learns: ClassVar[bool] = True

    beta: float = Field(0.95, gt=0, le=1)
    """Factor β on the noise multiplier."""

    falls: int = Field(3, ge=1)
    """Number of consecutive rounds with positive reward (falling loss) after which the noise shrinks."""

    clip_factor: float = Field(1.5, gt=0, allow_inf_nan=False)
    """Ratio of the next clip norm to the norm of the last noisy update."""

    clip_floor: float = Field(0.1, gt=0, le=1)
    """Minimum clip norm as a share of the run's clip norm C, which is the maximum."""


class FedSGD(PlannerOptions):
    """FedSGD: no noise and no cost, the reference of comparisons."""

    name: ClassVar[str] = "fedsgd"

    needs_noise: ClassVar[bool] = False


RANDOM_ARM = PlannerSpec(RandomArm, "Spend a privacy budget in steps drawn at random, for comparison")
FIXED_ARM = PlannerSpec(FixedArm, "Spend a privacy budget in steps of one size, for comparison")
ADPML_SPEC = PlannerSpec(ADPML, "Spend a privacy budget at a fixed rate of growth")
ADAP_SPEC = PlannerSpec(ADAP, "Lower the noise after each run of falling losses")
FEDSGD = PlannerSpec(FedSGD, "Train without noise and without cost, for comparison")
