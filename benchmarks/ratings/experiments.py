"""The rows of the ratings tables: which model, which planner, how much noise, and on how many splits."""

from dataclasses import dataclass, field
from typing import Literal

from benchmarks.ratings.published import DELTA
from common.options import Scalar
from common.privacy.zcdp import rho_of

Settings = dict[str, Scalar]
Table = Literal["once", "planned", "paper", "long", "honest"]

TUNING_SEEDS = "100 to 109"
"""Splits on which the generic defaults were chosen; none of them is reported."""

ROUNDS = 20
"""T of the planners."""

LONG = 100
"""T of the paper's own run without noise."""

REWARD_SHARE = 0.1
"""Of the training ratings, held out so that planners are not rewarded for the test ratings (algorithms.md §4.8)."""

EPSILONS = (1.0, 5.0, 10.0, 20.0)
MECHANISMS = {"privunit": "PrivUnitG", "gaussian": "Gaussian", "laplace": "Laplace"}
PLANNERS = {"uniform": "uniform (DPSGD)", "adpml": "ADPML", "adap": "ADAP", "bgtplanner": "**BGTplanner**"}

ADAM: Settings = {"lr": 0.5, "local-steps": 1, "server-lr": 0.05, "weighting": "uniform"}
"""Around the paper's model: one step a round, its direction followed by FedAdam at the authors' rate."""


@dataclass(frozen=True)
class Experiment:
    """One row.

    Args:
        key: Short name, also of cached results.
        title: Name in the table.
        table: Where it stands.
        seeds: Splits, 0 and up; each has noise and a first model of its own, the same for all rows.
        settings: The run's flat configuration, without seed, vocabulary and run id.
        tuned: Whether the set's own public constants replace the generic ones.
        at_true_cost: Whether ε is what the authors' accounting really costs a client of the set's mean number of ratings.
    """

    key: str
    title: str
    table: Table
    seeds: int
    settings: Settings = field(default_factory=dict)
    tuned: bool = False
    at_true_cost: bool = False

    @property
    def mechanism(self) -> str:
        """`gaussian`, …; empty without noise."""
        return str(self.settings.get("privacy.mechanism", ""))

    @property
    def epsilon(self) -> float:
        """ε of the run; 0 without noise."""
        return float(self.settings.get("privacy.epsilon", 0.0))

    @property
    def planner(self) -> str:
        """The method."""
        return str(self.settings["method"])

    @property
    def held_out(self) -> float:
        """Share of the training ratings that planners are rewarded on."""
        return float(self.settings.get("tasks.ratings.validation-share", 0.0))

    def share(self, spent: float) -> float:
        """What that ε is of the run's budget, in the unit of its account."""
        if self.mechanism == "gaussian":
            return rho_of(spent, DELTA) / rho_of(self.epsilon, DELTA)
        return spent / self.epsilon

    def config(self, seed: int, tuned: Settings, true_epsilon: float) -> Settings:
        """The run's flat configuration, without its vocabulary and run id.

        Args:
            seed: Of split and first model.
            tuned: The set's own constants.
            true_epsilon: What the authors' accounting really costs there.
        """
        whole: Settings = {"task": "ratings", "federation.min-clients": 1, "federation.cohort": 1.0, "seed": seed}
        own = {f"tasks.ratings.{key}": value for key, value in tuned.items()} if self.tuned else {}
        cost: Settings = {"privacy.epsilon": true_epsilon} if self.at_true_cost else {}
        return {**whole, **self.settings, **own, **cost}


def noise(mechanism: str, epsilon: float) -> Settings:
    """User-level local privacy, every upload scaled to the clip."""
    privacy: Settings = {"unit": "client", "mechanism": mechanism, "epsilon": epsilon, "normalise": True}
    return {f"privacy.{key}": value for key, value in privacy.items()}


def once(mechanism: str, epsilon: float, seeds: int, *, tuned: bool = False) -> Experiment:
    """The default model in one round, as `fedloom simulate --task ratings` runs it."""
    settings: Settings = {"method": "fedavg", "model": "default", "rounds": 1}
    settings |= noise(mechanism, epsilon) if mechanism else {}
    key, title = f"once-{mechanism}-{epsilon:g}", "default model"
    if tuned:
        key, title = f"{key}-tuned", f"{title}, constants of the set"
    return Experiment(key, title, "once", seeds, settings, tuned)


def planned(planner: str, mechanism: str, seeds: int) -> Experiment:
    """The default model over T rounds at ε = 10."""
    shared: Settings = {
        "method": planner,
        "model": "default",
        "rounds": ROUNDS,
        "tasks.ratings.validation-share": REWARD_SHARE,
    }
    settings = {**shared, f"algorithm.{planner}.inner": "fedavg", **noise(mechanism, 10.0)}
    return Experiment(f"planned-{planner}-{mechanism}", PLANNERS[planner], "planned", seeds, settings)


def paper(planner: str, mechanism: str, seeds: int, *, epsilon: float = 10.0, std: float = 0.3) -> Experiment:
    """The paper's model over T rounds."""
    settings: Settings = {
        "method": planner,
        "model": "paper",
        "rounds": ROUNDS,
        f"algorithm.{planner}.inner": "fedadam",
        "tasks.ratings.validation-share": REWARD_SHARE,
        "tasks.ratings.embedding-std": std,
    }
    settings |= {f"algorithm.fedadam.{key}": value for key, value in ADAM.items()}
    settings |= noise(mechanism, epsilon) if mechanism else {}
    key = f"paper-{planner}-{mechanism or 'none'}-{epsilon:g}-std{std:g}"
    title = PLANNERS.get(planner, "FedSGD") + ("" if std == 0.3 else f", first embeddings of sd {std:g}")
    return Experiment(key, title, "paper", seeds, settings)


def honest() -> Experiment:
    """The paper's model, every upload noised as one, at the ε that the authors' accounting really costs."""
    row = paper("uniform", "gaussian", 1)
    return Experiment("honest-uniform", "uniform, honest accounting", "honest", 1, row.settings, at_true_cost=True)


def long() -> Experiment:
    """The paper's protocol without noise: its rounds, its first embeddings, ratings that arrive."""
    row = paper("fedsgd", "", 1, std=1.0)
    more: Settings = {"rounds": LONG, "evaluate-every": 10, "tasks.ratings.arrival": "online"}
    settings = {**row.settings, **more, "tasks.ratings.validation-share": 0.0}
    return Experiment("long-fedsgd", f"FedSGD, {LONG} rounds, ratings arriving", "long", 1, settings)


EXPERIMENTS: tuple[Experiment, ...] = (
    *(once(mechanism, 10.0, 10) for mechanism in MECHANISMS),
    once("privunit", 10.0, 10, tuned=True),
    once("", 0.0, 5),
    *(once(mechanism, epsilon, 5) for mechanism in MECHANISMS for epsilon in EPSILONS if epsilon != 10),
    *(paper(planner, mechanism, 5) for mechanism in ("gaussian", "laplace") for planner in PLANNERS),
    *(planned(planner, mechanism, 5) for mechanism in ("gaussian", "laplace") for planner in PLANNERS),
    paper("fedsgd", "", 5),
    *(
        paper(planner, mechanism, 5, epsilon=epsilon)
        for epsilon in EPSILONS
        for mechanism in ("gaussian", "laplace")
        for planner in PLANNERS
        if epsilon != 10
    ),
    honest(),
    paper("uniform", "gaussian", 1, std=1.0),
    long(),
)
"""In the order in which they are worth having."""
