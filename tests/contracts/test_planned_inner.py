"""Planners around methods with several models or private layers: every release is charged, every round has a reward."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from client.data.dataset import AnyDataset
from client.data.read import partition, read_all
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.registry import build_learner
from client.tasks.rules.data.homes import Homes
from client.tasks.traffic.data.series import Sensors
from common.config.keys import current_key
from common.config.parse import parse
from common.config.run import RunConfig
from common.options import Scalar
from common.tasks.vocabulary import Vocabulary
from deploy.simulation.grid import InProcessGrid
from server.run import run
from tests.support.owners import PLANNERS, SHARING, costs_of, judge_by_loss, noisy, total_of
from tests.support.sensors import MEASURES, QUICK, rounds_of, sensor
from tests.support.toys import CATALOGUE, toy_homes

INNER = {"ifca": 2, "fedstl": 3, "pfgnn": 1}
"""Method -> number of releases of a client per round."""

NOISE: dict[str, Scalar] = {
    "privacy.unit": "client",
    "privacy.epsilon": 5.0,
    "run-id": "toy",
    "federation.min-clients": 1,
    "federation.wait": 0.1,
}
SMALL: dict[str, dict[str, Scalar]] = {
    "fedstl": {**QUICK, "algorithm.fedstl.clusters": 2, "training.local-steps": 2},
    "pfgnn": {"task": "markets", "tasks.markets.batch": 32, "training.local-steps": 2},
}


def planned(inner: str, folder: Path) -> RunConfig:
    own: dict[str, Scalar] = {**PLANNERS["bgtplanner"], "inner": inner}
    if inner not in SMALL:
        return noisy(folder, "bgtplanner", rounds=3, **own)
    flat = {current_key(f"algorithm.bgtplanner.{key.replace('_', '-')}"): value for key, value in own.items()}
    return parse({**SMALL[inner], **NOISE, "method": "bgtplanner", "rounds": 3, **flat})


def parts(inner: str) -> Sequence[AnyDataset]:
    if inner == "pfgnn":
        return partition(read_all("markets", "demo:3-5"), 0)
    if inner == "fedstl":
        return [Sensors((sensor(k),), MEASURES) for k in range(2)]
    return [Homes((home,), CATALOGUE) for home in toy_homes(2)]


def session(name: str, part: AnyDataset) -> Session:
    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, part)

    return Session(name, learner, MemoryStore(), in_memory(SHARING))


@pytest.mark.parametrize("inner", INNER)
def test_every_release_is_charged_and_every_round_has_a_reward(
    inner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_by_loss(monkeypatch)
    config = planned(inner, tmp_path)
    sessions = {k: session(f"client-{k}", part) for k, part in enumerate(parts(inner), start=1)}
    result = run(InProcessGrid(sessions, 1), config, tmp_path)
    rounds, total, costs = rounds_of(tmp_path), total_of(config), costs_of(tmp_path)
    assert result.status == "completed"
    assert all((r.asked, r.answered, r.refused) == (2, 2, {}) for r in rounds)
    for one in sessions.values():
        ledger = one.releaser.budget.ledger(config.privacy)
        assert len(ledger.entries()) == INNER[inner] * len(rounds)
        assert ledger.spent() == pytest.approx(sum(costs), rel=1e-6)
        assert 0.5 * total < ledger.spent() <= total
    assert any(r.server["reward"] for r in rounds[1:])
