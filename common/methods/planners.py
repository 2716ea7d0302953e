"""Methods that plan how much of the privacy budget each round spends; another method aggregates what clients send.

Costs are in the unit of the mechanism's account: zCDP ρ for `gaussian`, pure ε for `laplace` and `privunit`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from common.options import Options


class PlannerOptions(Options):
    """Options of every planner: the method that trains, and when to stop."""

    name: ClassVar[str]

    needs_noise: ClassVar[bool] = True
    """True if it plans a privacy budget, so that the run must add noise; False if the run must add none."""

    learns: ClassVar[bool] = False
    """True if it goes by the reward of every round, unless `observes_norm`."""

    requires_rewards: ClassVar[bool] = False
    """True if a round without rewards ends the run."""

    fixed_rounds: ClassVar[bool] = False
    """True if its state depends on the number of rounds and on its options, so that a resumed run keeps both."""

    inner: str = "fedavg"
    """The method that aggregates; its own options stand in its own table."""

    stop: Literal["never", "plateau"] = "never"
    """`plateau` ends the run after `patience` rounds without gain; it spends no budget, the rest stays unspent."""

    patience: int = Field(10, ge=1)
    """Rounds without a gain after which `plateau` stops."""

    min_gain: float = Field(0.0, ge=0, allow_inf_nan=False)
    """How much those rounds must gain together, in the unit of the reward, for the run to go on."""

    @field_validator("inner")
    @classmethod
    def _inner_is_installed(cls, name: str) -> str:
        from common.methods.registry import METHODS  # that module lists the planners too

        if name not in METHODS:
            raise ValueError(METHODS.unknown(name))
        return name

    @property
    def observes_norm(self) -> bool:
        """True if the reward is the fall of the noisy update's norm, which needs no metrics."""
        return False

    @property
    def context_size(self) -> int:
        """Number of singular values that describe a round to the planner."""
        return 0

    @property
    def by_rewards(self) -> bool:
        """True if the plan depends on metrics of clients."""
        return not self.observes_norm and (self.learns or self.stop == "plateau")


class BGTplanner(PlannerOptions):
    """A Gaussian process predicts what an arm gains, a Lagrangian keeps to the budget, a bandit draws (algorithms.md §4)."""

    name: ClassVar[str] = "bgtplanner"

    learns: ClassVar[bool] = True
    requires_rewards: ClassVar[bool] = True
    fixed_rounds: ClassVar[bool] = True

    arms: int = Field(5, ge=1)
    """K, levels of cost between B/T_max and B/T_min."""

    t_min: float = Field(0.8, gt=0, le=1)
    """T_min as a share of T_max, the rounds of the run: the dearest arm alone would last that long."""

    spacing: Literal["linspace", "code"] = "linspace"
    """`linspace`: the arms reach B/T_min; `code`: the authors' code divides by K and stops short of it."""

    context: int = Field(5, ge=0)
    """d, singular values that describe a round."""

    reward: Literal["metrics", "norm"] = "metrics"
    """Reward of a round: a metric that owners share (in the privacy statement), or the fall of the noisy update's norm."""

    t0: int = Field(5, ge=1)
    """T₀, rounds of every arm in stage 1a and rounds of stage 1b. Lowered where (K+1)T₀ is more than half the run."""

    arm_order: Literal["blocks", "code"] = "blocks"
    """Stage 1a: shuffled blocks of all arms, or, as in the authors' code, all rounds of the dearest arm first."""

    inputs: Literal["standardised", "code"] = "standardised"
    """Inputs of the Gaussian process: `standardised` puts arms into [0, 1], divides singular values by their mean and
    rewards by their largest of stage 1; `code` uses numbers as they are, too far apart for ℓ."""

    length_scale: float = Field(0.2, gt=0, allow_inf_nan=False)
    """ℓ of Eq 4."""

    omega: float = Field(0.001, ge=0, lt=1)
    """ω of Eq 4, how fast old rounds are forgotten."""

    sigma: float = Field(0.1, gt=0, allow_inf_nan=False)
    """σ of Eq 5, noise of a reward."""

    gamma: Literal["derived", "code"] = "derived"
    """γ of Eq 12 is 2√(KT/(m ln T)) with m = d + 1, the predictor's inputs, or m = N + 2 as in the authors' code."""

    z_mode: Literal["paper", "cap"] = "paper"
    """Z of Eq 10, or T·max|r|/B: the paper's M(T₀) is mostly its union bound, whatever the data."""

    @property
    def observes_norm(self) -> bool:
        """True if `reward` is `norm`."""
        return self.reward == "norm"

    @property
    def context_size(self) -> int:
        """D."""
        return self.context


class Uniform(PlannerOptions):
    """B/T each round: DPSGD."""

    name: ClassVar[str] = "uniform"


class ADPML(PlannerOptions):
    """Costs grow by a fixed rate and sum to B. Re-implemented; the parameters are chosen by us."""

    name: ClassVar[str] = "adpml"

    growth: float = Field(4.0, ge=1, allow_inf_nan=False)
    """ε_max/ε_min, the last round's cost over the first's."""


class ADAP(PlannerOptions):
    """Less noise after each run of falling losses, and a clip that follows the last update.

    Re-implemented; the parameters are chosen by us. It starts at B/T, so the budget ends before T rounds if noise shrinks.
    """

    name: ClassVar[str] = "adap"

    learns: ClassVar[bool] = True

    beta: float = Field(0.95, gt=0, le=1)
    """β, factor on the noise multiplier."""

    falls: int = Field(3, ge=1)
    """Rounds in a row whose loss falls, that is whose reward is positive, after which the noise shrinks."""

    clip_factor: float = Field(1.5, gt=0, allow_inf_nan=False)
    """The next clip over the norm of the last noisy update."""

    clip_floor: float = Field(0.1, gt=0, le=1)
    """Smallest clip as a share of the run's clip C, which is the largest."""


class FedSGD(PlannerOptions):
    """No noise and no cost: what privacy is measured against."""

    name: ClassVar[str] = "fedsgd"

    needs_noise: ClassVar[bool] = False


@dataclass(frozen=True)
class PlannerSpec:
    """A planner, as far as the configuration knows it; the planner itself is `server.planning.registry`'s.

    Args:
        options: Class of `[algorithm.<name>]`; its `name` is the planner's.
        summary: One line for `fedloom methods` and help.
        default_task: Task that `--method NAME` trains where no task is named; empty for the first one.
    """

    options: type[PlannerOptions]
    summary: str
    default_task: str = ""


PLANNERS: dict[str, PlannerSpec] = {
    spec.options.name: spec
    for spec in (
        PlannerSpec(BGTplanner, "Spend a privacy budget by a Gaussian process and a budgeted bandit", "ratings"),
        PlannerSpec(Uniform, "Spend a privacy budget evenly over the rounds (DPSGD)"),
        PlannerSpec(ADPML, "Spend a privacy budget at a fixed rate of growth"),
        PlannerSpec(ADAP, "Lower the noise after each run of falling losses"),
        PlannerSpec(FedSGD, "Train without noise and without cost, for comparison"),
    )
}
"""Planners by name; built in only, since the privacy statement vouches for them."""
