"""Random kills in runs with secure sums: one answer of a helper for a round, uploads as in ledgers."""

import random
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from common.config.parse import parse
from common.config.run import RunConfig
from common.options import Scalar
from server.record.result import Result
from studies.secure.kill_federation import CLIENTS, KillFederation
from studies.secure.kill_switch import KillSwitch

RUN, ROUNDS, EPSILON = "kills", 5, 50.0
KILLS_A_RUN, RUNS = 5, 20
KINDS = ("helper", "client", "server")

OPTIONS: Mapping[str, Scalar] = {
    "task": "rules",
    "method": "fedrule",
    "run-id": RUN,
    "rounds": ROUNDS,
    "evaluate-every": ROUNDS,
    "tasks.rules.hidden": 4,
    "federation.min-clients": CLIENTS,
    "privacy.trust": "helpers",
    "secure-sums.min-sum": 3,
}


@dataclass(frozen=True)
class Plan:
    """Kills of one run.

    Args:
        seed: Seed of the moments.
        has_noise: True if helpers add noise and clients charge ledgers.
        has_lost_nodes: True if clients and helpers are killed too, so that the model may lack clients or rounds.
    """

    seed: int
    has_noise: bool
    has_lost_nodes: bool

    @property
    def config(self) -> RunConfig:
        """Configuration of the run."""
        noise: dict[str, Scalar] = {"privacy.unit": "client", "privacy.epsilon": EPSILON, "privacy.accept-noise": True}
        return parse({**OPTIONS, **(noise if self.has_noise else {})})

    def moments(self, available: Mapping[str, int]) -> dict[str, list[int]]:
        """Return kind of process -> moments of its kills, of those that an unbroken run has."""
        rng = random.Random(f"{self.seed} {self.has_noise}")
        kinds = KINDS if self.has_lost_nodes else KINDS[2:]
        chosen = Counter(kinds[number % len(kinds)] for number in range(KILLS_A_RUN))
        return {kind: sorted(rng.sample(range(1, available[kind] + 1), times)) for kind, times in chosen.items()}


@dataclass(frozen=True)
class Outcome:
    """Run with kills.

    Args:
        kills: Kind of process -> number of kills.
        rounds: Number of completed rounds.
        sums: Number of sums that a helper opened.
        second_sums: Number of sums of which a helper gave two different answers, in whatever starts.
        lost: Number of rounds whose sum was lost.
        uploads: Number of different uploads with noise.
        unpaid: Number of these without an entry in the client's ledger.
        is_comparable: True if the server alone was killed, so that the model must equal that of the unbroken run.
        has_same_model: True if it does.
    """

    kills: dict[str, int]
    rounds: int
    sums: int
    second_sums: int
    lost: int
    uploads: int
    unpaid: int
    is_comparable: bool
    has_same_model: bool


def plans(runs: int = RUNS) -> list[Plan]:
    """Return plans with and without noise, each with and without kills of nodes."""
    return [Plan(seed, bool(seed & 1), bool(seed & 2)) for seed in range(runs)]


def measure(plan: Plan) -> Outcome:
    """Return the outcome of a plan."""
    model, available = _unbroken(plan.has_noise)
    with tempfile.TemporaryDirectory() as folder:
        switch = KillSwitch(Path(folder), plan.moments(available))
        federation = KillFederation(switch)
        result = federation.run(plan.config)
        return Outcome(
            kills=dict(switch.kills),
            rounds=result.rounds_done,
            sums=len(federation.answers.opened),
            second_sums=sum(len(found) > 1 for found in federation.answers.opened.values()),
            lost=result.privacy.sums["lost"],
            uploads=sum(map(len, federation.answers.uploads.values())) if plan.has_noise else 0,
            unpaid=_unpaid(federation) if plan.has_noise else 0,
            is_comparable=not plan.has_lost_nodes,
            has_same_model=result.model_sha256 == model,
        )


def run(runs: int = RUNS) -> list[dict[str, Any]]:
    """Return the outcomes of all plans as JSON objects."""
    found = []
    for plan in plans(runs):
        found.append(asdict(measure(plan)))
        print(found[-1], flush=True)
    return found


@cache
def _unbroken(has_noise: bool) -> tuple[str, dict[str, int]]:
    """Return the model of the run without kills, and its number of moments by kind of process."""
    with tempfile.TemporaryDirectory() as folder:
        federation = KillFederation(KillSwitch(Path(folder)))
        result: Result = federation.run(Plan(0, has_noise, has_lost_nodes=False).config)
        return result.model_sha256, dict(federation.switch.moments)


def _unpaid(federation: KillFederation) -> int:
    """Count the different uploads beyond the entries of their round in the client's ledger."""
    unpaid = 0
    for (name, number), sent in federation.answers.uploads.items():
        [path] = (federation.switch.folder / name).glob("lineages/*.fedloom-ledger")
        with closing(sqlite3.connect(path)) as ledger:
            where = "run = ? AND round = ? AND kind = 'update'"
            [paid] = ledger.execute(f"SELECT COUNT(*) FROM releases WHERE {where}", (RUN, number)).fetchone()
        unpaid += max(len(sent) - paid, 0)
    return unpaid
