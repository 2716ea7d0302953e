"""Cases of the audit: ways to release, claimed ε, and deliberate faults that it must detect."""

from dataclasses import dataclass
from typing import Literal

from studies.harness.row import RowKey

Way = Literal["gaussian", "laplace", "privunit", "sum"]
"""Way in which an update leaves: with one mechanism's noise, or in a sum with the helpers' noise."""

PURE: frozenset[Way] = frozenset({"laplace", "privunit"})
"""Ways judged by ln(TPR/FPR); the others are judged by μ."""

WAYS: dict[Way, str] = {
    "gaussian": "Gaussian",
    "laplace": "Laplace",
    "privunit": "PrivUnitG",
    "sum": "discrete Gaussian on sums",
}
"""Way -> name on the page."""

DELTA = 1e-5
MANY, FEW = 10_000, 1_000
"""Numbers of runs with each of the two contents.

There are many where ε is small, few where a case takes long or a fault is plain.
"""

FAULT_EPSILON = 2.0
HALVED, UNCLIPPED, UNCHARGED, REDRAWN = "halved-noise", "no-clip", "uncharged-round", "fresh-retry"
FAULTS = {
    HALVED: "half of the noise",
    UNCLIPPED: "no clip",
    UNCHARGED: "two releases charged as one",
    REDRAWN: "a retry with fresh noise",
}
"""Deliberate fault -> name on the page."""

SOUND = "sound"


@dataclass(frozen=True)
class Case:
    """One release of a client under audit.

    Args:
        way: Way in which the update leaves.
        epsilon: Claimed ε of the run.
        fault: Key of `FAULTS`; empty for the code as it is.
        rounds: Number of rounds over which the budget is spread evenly.
        trials: Number of runs with each of the two contents in the study.
    """

    way: Way
    epsilon: float
    fault: str = ""
    rounds: int = 1
    trials: int = MANY

    @property
    def key(self) -> RowKey:
        """Place in the stored results."""
        rounds = f"-rounds-{self.rounds}" if self.rounds > 1 else ""
        return RowKey("client", self.fault or SOUND, f"{self.way}-{self.epsilon:g}{rounds}")

    @property
    def is_pure(self) -> bool:
        """True if the mechanism has a finite ε at δ = 0."""
        return self.way in PURE


SOUND_CASES = (
    *(Case("gaussian", epsilon) for epsilon in (2.0, 8.0, 4.0, 1.0)),
    *(Case("laplace", epsilon) for epsilon in (2.0, 1.0)),
    *(Case("privunit", epsilon) for epsilon in (2.0, 1.0)),
    Case("laplace", 2.0, rounds=2),
    Case("sum", 8.0, trials=FEW),
    Case("sum", 2.0),
)
FAULTY_CASES = (
    *(Case(way, FAULT_EPSILON, HALVED, trials=FEW) for way in ("gaussian", "laplace", "sum")),
    Case("gaussian", FAULT_EPSILON, UNCLIPPED, trials=FEW),
    Case("laplace", FAULT_EPSILON, UNCHARGED, rounds=2, trials=FEW),
    Case("laplace", FAULT_EPSILON, REDRAWN, trials=FEW),
)


@dataclass(frozen=True)
class OneRun:
    """One DP-SGD training with canary sessions.

    Args:
        canaries: Number m of sessions that are in or out by a fair coin.
        epsilon: Claimed ε of the run.
        sample: Probability with which a session takes part in a step.
        rounds: Number of rounds of one local step.
        fault: `NOISELESS`, or empty.
    """

    canaries: int
    epsilon: float
    sample: float = 1.0
    rounds: int = 1
    fault: str = ""

    @property
    def key(self) -> RowKey:
        """Place in the stored results."""
        return RowKey("record", self.fault or SOUND, f"q{self.sample:g}-rounds-{self.rounds}-{self.epsilon:g}")


NOISELESS = "no-noise"
ONE_RUN_SEEDS, CANARIES = 3, 1_000
ONE_RUNS = (
    *(OneRun(CANARIES, epsilon) for epsilon in (1.0, 2.0, 4.0, 8.0)),
    OneRun(CANARIES, 8.0, sample=0.5, rounds=8),
    OneRun(CANARIES, FAULT_EPSILON, fault=NOISELESS),
)


@dataclass(frozen=True)
class Upload:
    """Real updates from which the items of a visitor, or the relations of a home, are read.

    Args:
        name: Short name.
        title: Name on the page.
        steps: Number of local steps.
        together: Number of clients whose updates are summed.
        epsilon: ε of every client's own noise in one round; 0 without noise.
        task: `sessions` or `rules`.
        model: Model of the task.
    """

    name: str
    title: str
    steps: int = 1
    together: int = 1
    epsilon: float = 0.0
    task: str = "sessions"
    model: str = "paper"

    @property
    def key(self) -> RowKey:
        """Place in the stored results."""
        return RowKey("uploads", self.task, self.name)


CLIENTS, UPLOAD_SEEDS = 200, 3
UPLOADS = (
    Upload("one-step", "items, one client, one step"),
    Upload("five-steps", "items, one client, five steps", steps=5),
    Upload("sum-10", "items, sum of 10 clients", together=10),
    Upload("sum-100", "items, sum of 100 clients", together=100),
    Upload("noise-8", "items, one client, own noise of ε = 8", epsilon=8.0),
    Upload("one-step", "relations, one client, one step", task="rules"),
    Upload("one-step-default", "relations, one client, one step, default model", task="rules", model="default"),
    Upload("sum-10", "relations, sum of 10 clients", together=10, task="rules"),
    Upload("noise-8", "relations, one client, own noise of ε = 8", epsilon=8.0, task="rules"),
)
MEMBERS = (
    Upload("member-one-step", "one client, one step"),
    Upload("member-noise-8", "one client, own noise of ε = 8", epsilon=8.0),
)
"""Real updates from which the presence of one session is guessed."""


@dataclass(frozen=True)
class Opened:
    """Opened sum of the rules of half of the clients, as the server of method `ridge` gets it.

    Args:
        name: Short name.
        title: Name on the page.
        epsilon: ε of the noise of two helpers; 0 for the exact sum of pairs.
    """

    name: str
    title: str
    epsilon: float = 0.0

    @property
    def key(self) -> RowKey:
        """Place in the stored results."""
        return RowKey("sums", "rules", self.name)


OPENED = (
    Opened("exact", "exact sum of pairs"),
    *(Opened(f"noise-{epsilon:g}", f"noised sum of triples, ε = {epsilon:g}", epsilon) for epsilon in (8.0, 2.0, 1.0)),
)

SHADOWS = 16
"""Number of clients whose updates the attacker makes itself, half of them with the session."""
