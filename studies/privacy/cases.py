"""Rows of the study of privacy noise: task, protection and ε."""

from dataclasses import dataclass, field
from typing import Literal

from common.metrics import USED
from studies.harness.experiment import Experiment, Settings
from studies.harness.row import RowKey

Protection = Literal["local", "helpers"]

PROTECTIONS: dict[Protection, str] = {
    "local": "own noise of each client",
    "helpers": "noise of two helpers on sums",
}
"""Protection -> name on the page."""

EPSILONS = (1.0, 2.0, 4.0, 8.0)
SEEDS = 3
PROTOCOL, NO_NOISE = "demo", "none"


@dataclass(frozen=True)
class Setting:
    """Runs of one task.

    Args:
        task: Name of the task.
        data: Source of the embedded data.
        people: Clients, in words.
        measure: Name of the metric.
        metric: Its key.
        floor: Key of the same metric of the baseline that sends nothing.
        floor_name: Name of that baseline.
        smallest: Smallest effect of interest.
        protections: Protections that the task has.
        settings: Further configuration.
        higher: True if larger values are better.
        without: Reason for protections that are not run.
        validation: Share of validation data, by which each client chooses between its model and the floor; 0 if the task
            has no such choice.
    """

    task: str
    data: str
    people: str
    measure: str
    metric: str
    floor: str
    floor_name: str
    smallest: float
    protections: tuple[Protection, ...]
    settings: Settings = field(default_factory=dict)
    higher: bool = True
    without: str = ""
    validation: float = 0.0

    @property
    def used(self) -> str:
        """Key of the metric of what clients use under noise."""
        return f"{USED.prefix}{self.metric}" if self.validation else self.metric

    @property
    def validation_key(self) -> str:
        """Key of the share of validation data in a configuration."""
        return f"tasks.{self.task}.validation-share"

    def key(self, name: str) -> RowKey:
        """Return the place of a row in the stored results."""
        return RowKey(self.task, PROTOCOL, name)

    def row(self, protection: Protection, epsilon: float) -> str:
        """Return the short name of a row."""
        return f"{protection}-{epsilon:g}"

    def experiments(self, defaults: Settings) -> list[Experiment]:
        """Return all rows, the one without noise first.

        Args:
            defaults: Options with which the task trains a model.
        """
        shared = {"task": self.task, "federation.min-clients": 1, **defaults, **self.settings}
        shared |= {self.validation_key: self.validation} if self.validation else {}
        rows = [Experiment(NO_NOISE, "no noise", shared, seeds=SEEDS, protocol=PROTOCOL)]
        for protection, name in PROTECTIONS.items():
            for epsilon in EPSILONS if protection in self.protections else ():
                settings = {**shared, **noise_settings(self.task, protection, epsilon)}
                title = f"{name}, ε = {epsilon:g}"
                rows.append(Experiment(self.row(protection, epsilon), title, settings, seeds=SEEDS, protocol=PROTOCOL))
        return rows


SETTINGS = (
    Setting(
        "rules",
        "demo:0-125",
        "125 homes",
        "HR@20",
        "hr20",
        "hr20_frequency",
        "relation frequency of the own home",
        0.01,
        ("local", "helpers"),
        {"rounds": 30},
        validation=0.3,
    ),
    Setting(
        "sessions",
        "demo:0-60",
        "60 visitors",
        "HR@20",
        "hr20",
        "hr20_history",
        "own history",
        0.005,
        ("local", "helpers"),
        {"rounds": 15, "algorithm.fedga.server-lr": 0.02},
        validation=0.2,
    ),
    Setting(
        "traffic",
        "demo:0-8",
        "8 sensors",
        "MSE",
        "mse",
        "ridge_mse",
        "own ridge regression",
        0.005,
        ("local",),
        {"rounds": 5},
        higher=False,
        validation=0.1,
        without="FedSTL assigns single clients to clusters, so its updates are not sent in sums.",
    ),
    Setting(
        "ratings",
        "demo",
        "200 raters",
        "RMSE",
        "rmse",
        "rmse_local_mean",
        "own mean",
        0.001,
        ("local", "helpers"),
        higher=False,
    ),
)


def noise_settings(task: str, protection: Protection, epsilon: float) -> Settings:
    """Return the options of a protection at an ε."""
    client: Settings = {"privacy.unit": "client", "privacy.epsilon": epsilon, "privacy.accept-noise": True}
    return (
        {**client, "privacy.trust": "helpers", "privacy.mechanism": "gaussian"} if protection == "helpers" else client
    )
