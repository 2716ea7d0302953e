"""Cases of the study of lies: method, task and lie."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from common.methods.planners import PLANNERS
from common.methods.registry import METHODS
from studies.harness.experiment import Settings
from studies.harness.row import RowKey

CLIENTS = 6
HONEST_SEEDS, LIE_SEEDS = 3, 1
"""Numbers of seeds of runs without the liar, which give the spread, and with it."""

GRACE_SECONDS, USUAL_GRACE_SECONDS = 0.05, 1.0
"""Wait for a silent client beyond the quorum's patience: in the study, and of `server.exchange.grid`."""

LIAR = CLIENTS
"""Node of the liar, the last one."""


@dataclass(frozen=True)
class Setting:
    """Runs of one task.

    Args:
        data: Embedded data.
        metric: Metric of quality.
        methods: Methods that are measured on the task, beside `EVERYWHERE`.
        higher: True if larger values are better.
        options: Further configuration.
    """

    data: str
    metric: str
    methods: tuple[str, ...]
    higher: bool = False
    options: Settings = field(default_factory=dict)


CONTROLS = ("random_arm", "fixed_arm", "adpml", "adap", "fedsgd")
"""Planners of `studies/plugins/planners`."""

SETTINGS = {
    "rules": Setting("demo:0-60", "loss", ("fedrule", "fedprox", "fedrep", "local", "ridge")),
    "sessions": Setting("demo:0-24", "mrr20", ("fedga", "fedadam", "fedyogi", "fedadagrad"), True),
    "traffic": Setting(
        "demo:0-6",
        "loss",
        ("fedstl", "ifca", "ditto"),
        options={"tasks.traffic.history": 9, "tasks.traffic.horizon": 3, "tasks.traffic.hidden": 4},
    ),
    "ratings": Setting("demo:0-60", "rmse", ("bgtplanner", "uniform", *CONTROLS)),
    "markets": Setting(
        "demo",
        "mrr20",
        ("pfgnn", "pfedme", "perfedavg"),
        True,
        options={"tasks.markets.width": 24, "tasks.markets.embedding": 6},
    ),
}
"""Task -> its runs."""

EVERYWHERE = "fedavg"
"""Method that is measured on every task."""

HONEST = "honest"
LIES = {
    "3.3e38": "3.3e38 in every coordinate of the update",
    "1e30": "1e30 in every coordinate of update and gradient",
    "100 x norm": "100 times the honest update and gradient",
    "one step": "an update of 60 local steps, as that of one",
    "examples": "2⁶³ − 1 training records in a training reply",
    "loss": "a training loss of 1.7e308",
    "metric": "a metric of 1e200 with a weight of 1e100",
    "invented": "a metric that the task does not declare",
    "escapes in names": "terminal escapes in its own name",
    "oversized": "a training reply of 1 GB",
    "silence": "no reply to any training request",
    "another's name": "the name of another client at enrolment",
    "escapes in metrics": "terminal escapes in the name of a metric",
    "escapes in reasons": "terminal escapes in the reason of a failure",
}
"""Lie -> description."""

OF_UPDATE = ("3.3e38", "1e30", "100 x norm", "one step")
"""Lies about the update, which a method without a shared model does not have."""

ROUNDS = 3
LOCAL_STEPS = 4


@dataclass(frozen=True)
class Case:
    """One row of the study.

    Args:
        task: Name of the task.
        method: Name of the method.
        lie: Key of `LIES`, or `HONEST` for the run without the liar.
    """

    task: str
    method: str
    lie: str = HONEST

    @property
    def key(self) -> RowKey:
        """Place in the stored results."""
        return RowKey(self.task, self.method, self.lie)

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return HONEST_SEEDS if self.lie == HONEST else LIE_SEEDS

    @property
    def settings(self) -> Settings:
        """Flat configuration, without seed and run id."""
        noisy = self.method in PLANNERS and PLANNERS[self.method].options.needs_noise
        return {
            "task": self.task,
            "method": self.method,
            "rounds": ROUNDS,
            "federation.min-clients": 1,
            "federation.wait": 1.0,
            "federation.patience": 0.1,
            **SETTINGS[self.task].options,
            **({} if self.method in PLANNERS else {"training.local-steps": LOCAL_STEPS}),
            **({"privacy.unit": "client", "privacy.epsilon": 8.0, "privacy.accept-noise": True} if noisy else {}),
        }


def all_pairs() -> Iterator[tuple[str, str]]:
    """Yield every measured pair of task and method."""
    for task, setting in SETTINGS.items():
        yield from ((task, method) for method in (EVERYWHERE, *setting.methods))


def lies_of(method: str) -> Iterator[str]:
    """Yield the lies that a client of a method has."""
    shares = method in PLANNERS or METHODS[method].options().capabilities().private_layers != "all"
    yield from (lie for lie in LIES if shares or lie not in OF_UPDATE)


def all_cases() -> Iterator[Case]:
    """Yield every row: all honest runs, then those of each lie."""
    for lie in (HONEST, *LIES):
        yield from (Case(*pair, lie) for pair in all_pairs() if lie == HONEST or lie in lies_of(pair[1]))
