"""Cases of the robustness study: task, attack, rule of aggregation and share of attackers."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from studies.harness.experiment import Settings
from studies.harness.row import RowKey

CLIENTS, SEEDS = 20, 3
DATA, FRESH_DATA = "demo:0-60", "demo:60-460"
"""Generated data of the clients, and data that no client has, on which the final model is measured."""

FRESH_TEST_SHARE = 0.3

ASSUMED = 0.3
"""Share of attackers that `trimmed-mean` and `multi-krum` assume: the largest of the study."""

SHARES = (0.1, 0.2, 0.3)


@dataclass(frozen=True)
class Setting:
    """Runs of one task.

    Args:
        method: Name of the method.
        rounds: Number of rounds.
        options: Further configuration.
    """

    method: str
    rounds: int
    options: Settings = field(default_factory=dict)


SETTINGS = {
    "rules": Setting("fedrule", 15),
    "sessions": Setting("fedga", 20, {"algorithm.fedga.server-lr": 0.02}),
}
"""Task -> its runs; with the default rate the sessions model learns later than in round 20."""

QUALITY = "hr20"
"""Metric of quality of both tasks."""

STORED = (QUALITY, "loss", "auc", "mrr20")
"""Metrics of the final model that are stored."""


def percent(share: float) -> str:
    """Return a share as the page prints it."""
    return f"{100 * share:.0f} %"


HONEST = "honest"
SCALED, WITHIN, FLIPPED, LABELS, ALIE, METRICS = "scaled", "within-bound", "sign-flip", "label-flip", "alie", "metrics"

ATTACKS = {
    SCALED: "scaled update",
    WITHIN: "reversed below the bound",
    FLIPPED: "sign flip",
    LABELS: "label flip",
    ALIE: "ALIE",
    METRICS: "false metrics",
}
"""Attack -> name on the page."""

FLIPPED_UPDATE, FLIPPED_GRADIENT = "sign-flip-update", "sign-flip-gradient"
PARTS = {FLIPPED: "update and gradient", FLIPPED_UPDATE: "update alone", FLIPPED_GRADIENT: "gradient alone"}
"""Sign flips of parts of a reply in FedRule, whose clients also send a gradient -> name on the page."""

UNBOUNDED = "no-bound"
RULES: dict[str, Settings] = {
    "none": {"federation.robust": "none"},
    "median": {"federation.robust": "median"},
    "trimmed-mean": {"federation.robust": "trimmed-mean"},
    "multi-krum": {"federation.robust": "multi-krum"},
    "geometric-median": {"federation.robust": "geometric-median"},
}
"""Rule of aggregation -> its options."""

WITHOUT_BOUND: Settings = {"federation.robust": "none", "federation.norm-bound": 0.0}


@dataclass(frozen=True)
class Case:
    """One row of the study.

    Args:
        task: Name of the task.
        attack: Key of `ATTACKS`, or `HONEST`.
        rule: Key of `RULES`, or `UNBOUNDED`.
        share: Share of attackers among the clients.
    """

    task: str
    attack: str
    rule: str
    share: float = 0.0

    @property
    def key(self) -> RowKey:
        """Place in the stored results."""
        return RowKey(self.task, self.attack, f"{self.rule}-{self.share:g}")

    @property
    def attackers(self) -> int:
        """Number of attackers."""
        return round(self.share * CLIENTS)

    @property
    def settings(self) -> Settings:
        """Flat configuration, without seed and run id."""
        setting = SETTINGS[self.task]
        return {
            "task": self.task,
            "method": setting.method,
            "rounds": setting.rounds,
            **setting.options,
            "federation.min-replies": 5,
            "federation.attackers": ASSUMED,
            "federation.updates": "dense",
            **(WITHOUT_BOUND if self.rule == UNBOUNDED else RULES[self.rule]),
        }


def all_cases() -> Iterator[Case]:
    """Yield every row: honest runs, then each attack; without the norm bound only attacks by length."""
    for task in SETTINGS:
        for rule in (*RULES, UNBOUNDED):
            yield Case(task, HONEST, rule)
        for attack in ATTACKS:
            for rule in (*RULES, *((UNBOUNDED,) if attack in (SCALED, WITHIN) else ())):
                yield from (Case(task, attack, rule, share) for share in SHARES)
    for attack in (FLIPPED_UPDATE, FLIPPED_GRADIENT):
        yield from (Case("rules", attack, rule, min(SHARES)) for rule in RULES)
