"""Cases of adaptive and targeted liars on real data: task, method, attack and share of liars."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from studies.harness.experiment import Settings
from studies.harness.row import RowKey

CLIENTS, SEEDS = 20, 3
SHARES = (0.05, 0.1, 0.2, 0.3)
PREFIX = "real-"
"""Prefix of the names of the sets in the stored results."""

HONEST, VALIDATED, UNCHECKED = "honest", "honest, validated", "honest, unchecked"
STATISTICS, FLIP, DRIFT, GRADIENTS, ALIE, IPM, MIN_MAX, PROMOTION, QUIET, BACKDOOR, METRICS = (
    "false statistics",
    "sign flip",
    "drift",
    "drift of gradients",
    "ALIE",
    "IPM",
    "min-max",
    "promotion",
    "quiet promotion",
    "backdoor",
    "false metrics",
)
ATTACKS = {
    STATISTICS: "statistics of other rows, each number one that honest data can give; all liars send the same",
    FLIP: "the honest update and gradient with the other sign, at the norm to which the server clips",
    DRIFT: "the honest update plus a step of half its norm in one direction, the same for all liars and rounds",
    GRADIENTS: "the same of the gradient alone, beside an honest update",
    ALIE: "mean less 1.5 standard deviations of the liars' updates (Baruch et al. 2019, arXiv 1902.06156)",
    IPM: "−0.5 times the mean of the liars' updates (Xie et al. 2019, arXiv 1903.03936)",
    MIN_MAX: "mean less γ standard deviations, γ as large as the distance to the liars' own updates allows"
    " (Shejwalkar and Houmansadr 2021)",
    PROMOTION: "training sessions of which every second click is one item",
    QUIET: "the same in every fifth session, which is near the bound on items",
    BACKDOOR: "homes with devices of two types and one more rule between them, which few honest homes have",
    METRICS: "an honest update with the best metric in the first half of the rounds, and the worst in the second",
}
"""Attack -> what the liars send."""

TARGETED = {"sessions": (PROMOTION, QUIET), "rules": (BACKDOOR,)}
"""Task -> attacks on its data, whose success is the share of honest lists with their target."""

UPDATES = (FLIP, DRIFT, ALIE, IPM, MIN_MAX, METRICS)
"""Attacks on networks."""

PILOT, PILOT_SEEDS = "pilot-", (101, 102)
"""Mark and seeds of the runs by which `federation.robust=auto` was chosen; no other run has these."""

PILOT_RULES = {
    "none": "mean",
    "geometric-median": "geometric median",
    "trimmed-mean": "trimmed mean",
    "median": "median",
}
"""Rule of the pilot -> its name; the last two lose much without liars, and have no runs with them."""

PILOT_ATTACKS = {
    "rules": (FLIP, DRIFT),
    "sessions": (FLIP, DRIFT, QUIET),
    "ratings": (FLIP, DRIFT),
    "traffic": (FLIP, ALIE),
    "markets": (FLIP, DRIFT),
}
"""Task -> attacks of the pilot."""

ALL_RULES = ("rules", "sessions")
"""Tasks of the pilot that show what coordinate-wise rules lose without liars."""

PLANNER = "bgtplanner"
"""Planner of noise that learns from metrics, of ratings."""


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
        shares: Shares of liars among clients that train a network.
        attacks: Attacks on the network.
    """

    source: str
    metric: str
    network: str
    options: Settings = field(default_factory=dict)
    clients: int = CLIENTS
    higher: bool = True
    shares: tuple[float, ...] = (0.1, 0.2)
    attacks: tuple[str, ...] = UPDATES


SETTINGS = {
    "rules": Setting("IFTTT, 130 homes", "hr20", "fedrule", {"rounds": 16}, attacks=(*UPDATES, GRADIENTS)),
    "sessions": Setting(
        "Diginetica, 200 groups of 20 sessions over 500 items",
        "mrr20",
        "fedga",
        {"rounds": 20, "model": "paper", "algorithm.fedga.server-lr": 0.02},
    ),
    "traffic": Setting(
        "Boroondara, 20 approaches",
        "mse",
        "fedstl",
        {"rounds": 3},
        higher=False,
        shares=(0.2,),
        attacks=(FLIP, ALIE),
    ),
    "ratings": Setting("FilmTrust, 200 raters", "rmse", "fedavg", {"rounds": 8, "model": "paper"}, higher=False),
    "markets": Setting(
        "XMarket Electronics, 7 markets",
        "mrr20",
        "pfgnn",
        {"rounds": 3},
        clients=7,
        shares=(0.2,),
        attacks=(FLIP, DRIFT, IPM),  # one liar has no deviation
    ),
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
        is_pilot: True for a run of the pilot.
    """

    task: str
    method: str
    attack: str = HONEST
    share: float = 0.0
    rule: str = "none"
    is_pilot: bool = False

    @property
    def key(self) -> RowKey:
        """Place in the stored results."""
        rule = "" if self.rule == "none" else f"-{self.rule}"
        return RowKey(PREFIX + PILOT * self.is_pilot + self.task, self.method, f"{self.attack}-{self.share:g}{rule}")

    @property
    def title(self) -> str:
        """Method and task."""
        return f"`{self.method}` {self.task}"

    @property
    def liars(self) -> int:
        """Number of liars."""
        return round(self.share * SETTINGS[self.task].clients)

    @property
    def honest(self) -> "Case":
        """The run without liars that this one is compared with."""
        return Case(self.task, self.method, VALIDATED if self.is_validated else HONEST, is_pilot=self.is_pilot)

    @property
    def is_validated(self) -> bool:
        """True if clients have validation data."""
        return self.attack in (METRICS, VALIDATED)

    @property
    def settings(self) -> Settings:
        """Flat configuration, without seed and run id."""
        setting = SETTINGS[self.task]
        noise: Settings = {"privacy.unit": "client", "privacy.epsilon": 8.0, "privacy.accept-noise": True}
        return {
            "task": self.task,
            "method": self.method,
            "federation.min-replies": 3,
            **({} if self.method == "ridge" else setting.options),
            **({} if self.rule == "none" else {"federation.robust": self.rule, "federation.min-replies": 5}),
            **(noise if self.method == PLANNER else {}),
            **({"federation.norm-bound": 0.0} if self.attack == UNCHECKED else {}),
            **({f"tasks.{self.task}.validation-share": 0.2} if self.is_validated else {}),
        }


def all_cases() -> Iterator[Case]:
    """Yield every row: those of the defaults before those of the networks, honest runs first."""
    for task in SETTINGS:
        yield Case(task, "ridge", UNCHECKED)
        yield from _cases(task, "ridge", (STATISTICS, *TARGETED.get(task, ())), SHARES)
    for task, setting in SETTINGS.items():
        yield Case(task, setting.network, UNCHECKED)
        yield from _cases(task, setting.network, (*setting.attacks, *TARGETED.get(task, ())), setting.shares)
    yield from _cases("ratings", PLANNER, (METRICS,), (0.2,))


def pilot_cases() -> Iterator[Case]:
    """Yield the rows of the pilot: its rules without liars, and the first two with a fifth of liars."""
    for task, attacks in PILOT_ATTACKS.items():
        for place, rule in enumerate([*PILOT_RULES][: None if task in ALL_RULES else 2]):
            for attack in (HONEST, *(attacks if place < 2 else ())):
                yield Case(task, SETTINGS[task].network, attack, 0.2 * (attack != HONEST), rule, is_pilot=True)


def _cases(task: str, method: str, attacks: Sequence[str], shares: Sequence[float]) -> Iterator[Case]:
    cases = [case for attack in attacks for share in shares if (case := Case(task, method, attack, share)).liars]
    yield from dict.fromkeys([*(case.honest for case in cases), *cases])
