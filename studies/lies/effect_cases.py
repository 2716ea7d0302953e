"""Cases of adaptive and targeted liars on real data: task, method, attack and share of liars."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from studies.harness.experiment import Settings
from studies.harness.row import RowKey

CLIENTS, SEEDS = 20, 3
SHARES = (0.05, 0.1, 0.2, 0.3)
PREFIX = "real-"
"""Prefix of the names of the sets in the stored results."""

HONEST = "honest"
STATISTICS, FLIP, DRIFT, ALIE, IPM, MIN_MAX, PROMOTION, METRICS = (
    "false statistics",
    "sign flip",
    "drift",
    "ALIE",
    "IPM",
    "min-max",
    "promotion",
    "false metrics",
)
ATTACKS = {
    STATISTICS: "statistics of other rows, each number one that honest data can give; all liars send the same",
    FLIP: "the honest update and gradient with the other sign, at the norm to which the server clips",
    DRIFT: "the honest update plus a step of half its norm in one direction, the same for all liars and rounds",
    ALIE: "mean less 1.5 standard deviations of the liars' updates (Baruch et al. 2019, arXiv 1902.06156)",
    IPM: "−0.5 times the mean of the liars' updates (Xie et al. 2019, arXiv 1903.03936)",
    MIN_MAX: "mean less γ standard deviations, γ as large as the distance to the liars' own updates allows"
    " (Shejwalkar and Houmansadr 2021)",
    PROMOTION: "training sessions of which every second click is one item",
    METRICS: "an honest update with the best metric in the first half of the rounds, and the worst in the second",
}
"""Attack -> what the liars send."""

OF_SUMS, OF_NETWORKS = (STATISTICS, PROMOTION), (FLIP, DRIFT, ALIE, IPM, MIN_MAX, PROMOTION, METRICS)
"""Attacks on closed forms, and on networks; promotion is of sessions alone."""


@dataclass(frozen=True)
class Setting:
    """Runs of one task on real data.

    Args:
        source: Data set, in words.
        metric: Metric of quality.
        network: The paper's method.
        options: Options of the paper's method.
        clients: Number of clients.
        higher: True if larger values are better.
    """

    source: str
    metric: str
    network: str
    options: Settings = field(default_factory=dict)
    clients: int = CLIENTS
    higher: bool = True


SETTINGS = {
    "rules": Setting("IFTTT, 130 homes", "hr20", "fedrule", {"rounds": 8}),
    "sessions": Setting(
        "Diginetica, 200 groups of 20 sessions over 500 items",
        "mrr20",
        "fedga",
        {"rounds": 8, "algorithm.fedga.server-lr": 0.02},
    ),
    "traffic": Setting("Boroondara, 20 approaches", "mse", "fedstl", {"rounds": 3}, higher=False),
    "ratings": Setting("FilmTrust, 200 raters", "rmse", "fedavg", {"rounds": 8, "model": "paper"}, higher=False),
    "markets": Setting("XMarket Electronics, 7 markets", "mrr20", "pfgnn", {"rounds": 3}, clients=7),
}
"""Task -> its runs."""


@dataclass(frozen=True)
class Case:
    """One row of the study.

    Args:
        task: Name of the task.
        method: `ridge`, the default of each task, or the paper's method.
        attack: Key of `ATTACKS`, or `HONEST`.
        share: Share of liars.
        rule: Option `federation.robust`.
    """

    task: str
    method: str
    attack: str = HONEST
    share: float = 0.0
    rule: str = "none"

    @property
    def key(self) -> RowKey:
        """Place in the stored results."""
        rule = "" if self.rule == "none" else f"-{self.rule}"
        return RowKey(PREFIX + self.task, self.method, f"{self.attack}-{self.share:g}{rule}")

    @property
    def liars(self) -> int:
        """Number of liars."""
        return round(self.share * SETTINGS[self.task].clients)

    @property
    def settings(self) -> Settings:
        """Flat configuration, without seed and run id."""
        setting = SETTINGS[self.task]
        return {
            "task": self.task,
            "method": self.method,
            "federation.min-replies": 3,
            **({} if self.method == "ridge" else setting.options),
            **({} if self.rule == "none" else {"federation.robust": self.rule, "federation.min-replies": 5}),
            **({f"tasks.{self.task}.validation-share": 0.2} if self.attack == METRICS else {}),
        }


def all_cases() -> Iterator[Case]:
    """Yield every row: those of the defaults before those of the networks, honest runs first."""
    for is_network in (False, True):
        for task, setting in SETTINGS.items():
            method = setting.network if is_network else "ridge"
            yield Case(task, method)
            attacks = OF_NETWORKS if is_network else OF_SUMS
            for attack in (one for one in attacks if one != PROMOTION or task == "sessions"):
                cases = (Case(task, method, attack, share) for share in SHARES)
                yield from (case for case in cases if case.liars)
