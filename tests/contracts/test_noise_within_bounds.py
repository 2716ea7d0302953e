"""Honest replies with noise are within the norm bound, for every mechanism and planner; lies are not."""

from pathlib import Path

import pytest

from client.owner.policy import Policy
from client.state import MemoryStore
from common.config.run import RunConfig
from common.options import Scalar
from common.wire.messages import TRAIN
from deploy.simulation.grid import InProcessGrid
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.run import run
from studies.lies.liars import LyingGrid, scaled, trained
from tests.support.toy_sessions import toy_session, toy_sessions
from tests.support.toys import CATALOGUE, configured, toy_homes

ROUNDS = 4

NOISES: dict[str, dict[str, Scalar]] = {
    "gaussian": {"privacy.unit": "client", "privacy.mechanism": "gaussian"},
    "laplace": {"privacy.unit": "client", "privacy.mechanism": "laplace"},
    "privunit": {"privacy.unit": "client", "privacy.mechanism": "privunit"},
    "dp-sgd": {"privacy.unit": "record", "privacy.mechanism": "gaussian"},
}
METHODS = ("fedavg", "uniform", "bgtplanner")


def configuration(method: str, noise: str, folder: Path) -> RunConfig:
    path = folder / "catalogue.json"
    path.write_text(CATALOGUE.to_json())
    options: dict[str, Scalar] = {**NOISES[noise], "privacy.epsilon": 8.0, "catalogue": str(path), "rounds": ROUNDS}
    return configured(method, **options)


def refused(folder: Path) -> list[dict[str, str]]:
    return [event.refused for event in RunDirectory(folder, "toy").events() if isinstance(event, RoundEvent)]


@pytest.mark.parametrize("clients", [2, 3, 6])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("noise", NOISES)
def test_no_honest_reply_with_noise_is_left_out(noise: str, method: str, clients: int, tmp_path: Path) -> None:
    config = configuration(method, noise, tmp_path)
    policy, homes = Policy(share_metrics="always"), toy_homes(clients)
    sessions = {k: toy_session(f"c{k}", (home,), MemoryStore(), policy) for k, home in enumerate(homes, start=1)}
    run(InProcessGrid(sessions, 1), config, tmp_path)
    lines = refused(tmp_path)
    assert lines
    assert lines == [{}] * len(lines)


@pytest.mark.parametrize("noise", NOISES)
def test_an_update_far_beyond_the_noise_is_left_out_and_named(noise: str, tmp_path: Path) -> None:
    sessions = toy_sessions([MemoryStore() for _ in range(3)])
    lie = trained(update=scaled(100), gradient=scaled(100))
    run(LyingGrid(sessions, 2, TRAIN, lie), configuration("fedavg", noise, tmp_path), tmp_path)
    for line in refused(tmp_path):
        assert list(line) == ["client-1"]
        assert "times the typical" in line["client-1"]
