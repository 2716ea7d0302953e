"""Clients with one home and a persistent privacy ledger each, and their runs with noise."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from client.tasks.rules.data.homes import Home, Homes
from common.arrays import Arrays
from common.config.run import RunConfig
from common.options import Scalar
from common.privacy.mechanisms import build_account
from common.tasks.registry import TASKS
from common.tasks.spec import Objective
from common.tasks.vocabulary import Vocabulary
from deploy.simulation.grid import InProcessGrid
from server.aggregation.metrics import Evaluation
from server.record.folder import RunDirectory
from server.record.journal import Journal
from server.record.result import Result
from server.run import run
from tests.support.sensors import rounds_of
from tests.support.toys import CATALOGUE, configured, toy_homes

SHARING = Policy(share_metrics="always")
PLANNERS: dict[str, dict[str, Scalar]] = {"bgtplanner": {"arms": 2, "t0": 1, "t_min": 0.5}, "uniform": {}}
"""Options with which planners reach all their stages in eight rounds."""


@dataclass
class Owners:
    """Clients with one home each; their ledgers persist between runs.

    Args:
        policies: Policy of each client.
        seed: Seed of their noise.
        stores: Client states by name.
    """

    policies: tuple[Policy, ...]
    seed: int = 0
    stores: dict[str, MemoryStore] = field(default_factory=dict)

    def __post_init__(self) -> None:
        homes = toy_homes(len(self.policies))
        self.sessions = {k + 1: self._session(f"client-{k}", home, k) for k, home in enumerate(homes)}

    def run(self, config: RunConfig, folder: Path) -> Result:
        return run(InProcessGrid(self.sessions, 1), config, folder)

    def spent(self, config: RunConfig) -> dict[str, float]:
        """Return the cost of the run in each ledger."""
        return {
            session.client: session.releaser.budget.ledger(config.privacy).spent_in("toy")
            for session in self.sessions.values()
        }

    def _session(self, name: str, home: Home, k: int) -> Session:
        def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
            return build_learner(config, Homes((home,), CATALOGUE))

        draws = count()
        self.stores[name] = MemoryStore()
        releaser = in_memory(self.policies[k], lambda: np.random.default_rng([self.seed, k, next(draws)]))
        return Session(name, learner, self.stores[name], releaser)


def owners(number: int = 3, policy: Policy = SHARING) -> Owners:
    return Owners((policy,) * number)


def noisy(folder: Path, method: str = "uniform", **options: Scalar) -> RunConfig:
    """Return the configuration of a run with noise; its vocabulary is written to `folder`."""
    noise: dict[str, Scalar] = {"privacy__unit": "client", "privacy__epsilon": 5.0}
    return quick(folder, method, **{"rounds": 8, "federation__min_clients": 1, **noise, **options})


def quick(folder: Path, method: str, **options: Scalar) -> RunConfig:
    """Return the configuration of a run that waits for nobody; its vocabulary is written to `folder`."""
    path = folder / "catalogue.json"
    path.write_text(CATALOGUE.to_json(), "utf-8")
    return configured(method, **{"federation__wait": 0.1, "catalogue": str(path), **options})


def total_of(config: RunConfig) -> float:
    return build_account(config.privacy).total(config.privacy.epsilon, config.privacy.delta)


def costs_of(folder: Path) -> list[float]:
    return [r.server["cost"] for r in rounds_of(folder)]


def model_of(folder: Path) -> Arrays:
    return RunDirectory(folder, "toy").load_model()[0]


def judge_by_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the loss the objective of task rules: the lists of toy homes hardly change from round to round."""
    changed = replace(TASKS["rules"], objective=Objective("loss"), comparison=None)
    monkeypatch.setitem(TASKS._loaded, "rules", changed)


def listening(evaluations: list[Evaluation]) -> Callable[[Journal, int, Evaluation], None]:
    """Return a replacement of `Journal.record_evaluation` that also appends to a list."""
    record = Journal.record_evaluation

    def note(journal: Journal, number: int, evaluation: Evaluation) -> None:
        evaluations.append(evaluation)
        record(journal, number, evaluation)

    return note
