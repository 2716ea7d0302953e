"""Planners, which set the cost of each round while an inner method trains; names of all methods.

Costs have the unit of the mechanism's account: μ²/2 of Gaussian DP for `gaussian`, pure ε for `laplace` and `privunit`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from common.errors import ConfigError
from common.methods.registry import METHODS
from common.options import Options, check_defaults
from common.registry import Registry
from common.text import hint


class PlannerOptions(Options):
    """Options of every planner: the inner method and early stopping."""

    name: ClassVar[str]

    needs_noise: ClassVar[bool] = True
    """True if it plans a privacy budget, and the run must add noise; False if the run must not add noise."""

    learns: ClassVar[bool] = False
    """True if the plan depends on the reward of every round."""

    equal_costs: ClassVar[bool] = False
    """True if all rounds cost the same."""

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
        if name not in METHODS:
            raise ValueError(METHODS.describe_unknown(name))
        return name

    def limit(self, rounds: int) -> int:
        """Return the number of rounds that share the budget, of a run with so many rounds."""
        return rounds

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


class ArmOptions(PlannerOptions):
    """Options of planners that choose among levels of cost, the arms."""

    fixed_rounds: ClassVar[bool] = True

    arms: int = Field(5, ge=1, le=50)
    """Number K of arms, levels of cost."""

    t_min: float = Field(0.8, gt=0, le=1)
    """Share T_min/T_max of the rounds after which the most expensive arm alone exhausts the budget."""

    arms_kind: Literal["paper", "wide"] = "paper"
    """Costs of the arms. `paper`: between B/T_max and B/T_min. `wide`: ½, 1, 2, 4, … shares B/T_max;
    `bgtplanner` may then also skip at no cost, and end the run."""

    spacing: Literal["linspace", "code"] = "linspace"
    """Spacing of the arms: `linspace` includes B/T_min; `code`, as the authors', ends below it."""


class BGTplanner(ArmOptions):
    """BGTplanner: predicted rewards, Lagrangian of the budget, bandit of cost levels (algorithms.md §4)."""

    name: ClassVar[str] = "bgtplanner"

    learns: ClassVar[bool] = True
    requires_rewards: ClassVar[bool] = True
    context: int = Field(5, ge=0)
    """Number d of singular values that describe a round."""

    reward: Literal["metrics", "norm"] = "metrics"
    """Reward of a round. `metrics`: one that owners share. `norm`: the fall of the noisy update's norm."""

    t0: int = Field(5, ge=1)
    """Rounds T₀ of each arm in stage 1a and of stage 1b; lowered if (K+1)T₀ exceeds half of the run."""

    arm_order: Literal["blocks", "code"] = "blocks"
    """Order of arms in stage 1a. `blocks`: shuffled blocks of all arms. `code`: as in the authors' code,
    all rounds of the most expensive arm first, which confounds arms with time."""

    inputs: Literal["standardised", "code"] = "standardised"
    """Scale of the predictor's inputs. `standardised`: arms in [0, 1], singular values over their mean,
    rewards over their maximum in stage 1. `code`: unscaled; all inputs are then too far apart for ℓ."""

    length_scale: float = Field(0.2, gt=0, allow_inf_nan=False)
    """Length scale ℓ of Eq 4."""

    omega: float = Field(0.001, ge=0, lt=1)
    """Rate ω of Eq 4 at which old rounds lose weight."""

    sigma: float = Field(0.1, gt=0, allow_inf_nan=False)
    """Standard deviation σ of the observation error of a reward, Eq 5."""

    gamma: Literal["derived", "code"] = "derived"
    """Number m in γ of Eq 12. `derived`: d + 1, the predictor's inputs. `code`: N + 2, the authors'."""

    z_mode: Literal["paper", "cap"] = "paper"
    """Bound Z. `paper`: Eq 10, whose M(T₀) is mostly its union bound for any data. `cap`: T·max|r|/B."""

    doubts: int = Field(3, ge=1)
    """Number of decisions in a row in which no `wide` arm promises a gain, after which the run ends."""

    @property
    def observes_norm(self) -> bool:
        """True if the reward is the decrease of the noisy update's norm."""
        return self.reward == "norm"

    @property
    def skips(self) -> bool:
        """True if it may skip, and end a run without gains: with wide arms."""
        return self.arms_kind == "wide"

    @property
    def context_size(self) -> int:
        """Number d of singular values in the context of a round."""
        return self.context


class Uniform(PlannerOptions):
    """Uniform planner: an equal cost each round (DPSGD)."""

    name: ClassVar[str] = "uniform"

    equal_costs: ClassVar[bool] = True

    rounds: int = Field(0, ge=0)
    """Number of rounds that share the budget; the run ends after them. 0: all rounds of the run."""

    def limit(self, rounds: int) -> int:
        """Return the number of rounds that share the budget, of a run with so many rounds."""
        return min(self.rounds or rounds, rounds)


@dataclass(frozen=True)
class PlannerSpec:
    """Registry entry of a planner; `server.planning.registry` builds the planner itself.

    Args:
        options: Class of `[algorithm.<name>]`; its `name` is the planner's name.
        summary: One line for `fedloom methods` and help.
        default_task: Task that `--method NAME` trains by default; empty for the first task.
    """

    options: type[PlannerOptions]
    summary: str
    default_task: str = ""

    def __post_init__(self) -> None:
        """Check the defaults."""
        check_defaults(self.options)

    @property
    def name(self) -> str:
        """Name of the planner in options and files."""
        return self.options.name


BGTPLANNER = PlannerSpec(BGTplanner, "Spend a privacy budget by a Gaussian process and a budgeted bandit", "ratings")
UNIFORM = PlannerSpec(Uniform, "Spend a privacy budget evenly over the rounds (DPSGD)")

PLANNERS: Registry[PlannerSpec] = Registry(
    "planner",
    "fedloom.planners",
    PlannerSpec,
    {"bgtplanner": "common.methods.planners:BGTPLANNER", "uniform": "common.methods.planners:UNIFORM"},
    moved=dict.fromkeys(("random_arm", "fixed_arm", "adpml", "adap", "fedsgd"), "studies/plugins/planners"),
)
"""Planners by name."""


def method_names() -> tuple[str, ...]:
    """Return the valid values of `method`: training methods, then planners.

    Raises:
        ConfigError: A package provides a planner with the name of a method.
    """
    if twice := next((name for name in PLANNERS if name in METHODS), ""):
        raise ConfigError(
            f"'{twice}' is a method of {METHODS.origin(twice)} and a planner of {PLANNERS.origin(twice)}; uninstall one"
        )
    return (*METHODS, *PLANNERS)


def describe_unknown_method(name: str) -> str:
    """Return the message about an unknown value of `method`."""
    for registry in (METHODS, PLANNERS):
        if name in registry.moved:
            return registry.describe_unknown(name)
    closest = hint(name, method_names()) or ";"
    return f"unknown method '{name}'{closest} installed: {', '.join(method_names())}"
