"""The rows of the results table: which methods, with which settings, tuned over which grid."""

from dataclasses import dataclass, field
from typing import Literal

from common.options import Scalar

Settings = dict[str, Scalar]

ROUNDS, LOCAL_STEPS = 100, 3
EVALUATE_EVERY = 10
"""Rounds between two looks at the validation loss: a stopping round is a multiple of it."""

TUNING_SEED = 100
"""Rates and stopping rounds are chosen on this seed's validation split; it is not among the seeds reported."""

VALIDATION_SHARE = 0.2


@dataclass(frozen=True)
class Point:
    """One point of a grid."""

    label: str
    settings: Settings

    @classmethod
    def of(cls, **rates: float) -> "Point":
        """`lr=3, clip_norm=0.2`, keys without their section."""
        named = {key.replace("_", "-"): value for key, value in rates.items()}
        return cls(", ".join(f"{key} {value:g}" for key, value in named.items()), dict(named))


SGD = (Point.of(lr=0.3), Point.of(lr=3), Point.of(lr=10, clip_norm=0.2))
ADAM = (Point.of(lr=0.003), Point.of(lr=0.01))
SERVER_ADAM = (Point.of(server_lr=0.003), Point.of(server_lr=0.01), Point.of(server_lr=0.03))
"""One grid for all methods of a kind; the server's Adam works on local SGD of rate 0.1."""


@dataclass(frozen=True)
class Experiment:
    """One row: a method, on one model, over one grid.

    Args:
        key: Short name, also of cached results.
        title: Name in the table.
        method: As in `--method`.
        grid: What is tuned.
        settings: Options of the method that all points share, keys without their section.
        model: As in `--set model=…`.
        central: One client holds all homes (GraphRule) instead of one client a home.
        task: Options of the rules task.
    """

    key: str
    title: str
    method: Literal["fedavg", "fedadam", "fedrule"]
    grid: tuple[Point, ...]
    settings: Settings = field(default_factory=dict)
    model: Literal["paper", "default"] = "paper"
    central: bool = False
    task: Settings = field(default_factory=dict)

    def config(self, point: Point, *, seed: int, rounds: int, validation: bool) -> Settings:
        """The run's flat configuration, without its catalogue and run id."""
        negatives = {"negatives": 1} if self.model == "paper" else {}
        task = {**negatives, **self.task, "validation-share": VALIDATION_SHARE if validation else 0.0}
        algorithm = {"local-steps": LOCAL_STEPS, **self.settings, **point.settings}
        return {
            "method": self.method,
            "model": self.model,
            "seed": seed,
            "rounds": rounds,
            "evaluate-every": EVALUATE_EVERY if validation else rounds,
            "federation.min-clients": 1,
            **{f"algorithm.{self.method}.{key}": value for key, value in algorithm.items()},
            **{f"tasks.rules.{key}": value for key, value in task.items()},
        }


LOCAL_SGD: Settings = {"optimizer": "sgd"}
PERSIST: Settings = {"optimizer": "adam", "moments": "persist"}
RESET: Settings = {"optimizer": "adam", "moments": "reset"}
EQ3: Settings = {"optimizer": "sgd", "control": "eq3"}
GRAD_MEAN: Settings = {**PERSIST, "control": "grad_mean"}
BEHIND_SERVER: Settings = {"optimizer": "sgd", "lr": 0.1, "tau": 1e-6}
"""τ well below the mean update's size; at 1e-3 it swallows the denominator, and server Adam hardly moves."""
RULE_BEHIND_SERVER: Settings = {**BEHIND_SERVER, "control": "eq3", "server-optimizer": "adam"}

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment("graphrule-sgd", "GraphRule (central), SGD", "fedavg", SGD, LOCAL_SGD, central=True),
    Experiment("graphrule-adam", "GraphRule (central), Adam", "fedavg", ADAM, PERSIST, central=True),
    Experiment(
        "graphrule-server", "GraphRule (central), server Adam", "fedadam", SERVER_ADAM, BEHIND_SERVER, central=True
    ),
    Experiment("fedgnn-sgd", "FedGNN, SGD", "fedavg", SGD, LOCAL_SGD),
    Experiment("fedgnn-adam", "FedGNN, local Adam, moments persist", "fedavg", ADAM, PERSIST),
    Experiment("fedgnn-adam-reset", "FedGNN, local Adam, moments reset", "fedavg", ADAM, RESET),
    Experiment("fedgnn-server", "FedGNN, server Adam", "fedadam", SERVER_ADAM, BEHIND_SERVER),
    Experiment("fedrule-sgd", "FedRule, SGD, Eq 3", "fedrule", SGD, EQ3),
    Experiment("fedrule-adam", "FedRule, local Adam, `grad_mean`", "fedrule", ADAM, GRAD_MEAN),
    Experiment("fedrule-server", "FedRule, Eq 3, server Adam", "fedrule", SERVER_ADAM, RULE_BEHIND_SERVER),
    Experiment(
        "default-fedrule", "**default**: FedRule, local Adam, `grad_mean`", "fedrule", ADAM, GRAD_MEAN, "default"
    ),
    Experiment(
        "default-fedgnn", "default model, FedGNN, server Adam", "fedadam", SERVER_ADAM, BEHIND_SERVER, "default"
    ),
    Experiment(
        "default-counts",
        "default + count offset, FedRule",
        "fedrule",
        ADAM,
        GRAD_MEAN,
        "default",
        task={"count-offset": True},
    ),
)
