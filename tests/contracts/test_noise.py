"""Every method trains with noise of the strength that its cost pays for."""

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from client.data.read import read_all
from client.owner.policy import Policy
from client.state import MemoryStore
from common.config.parse import parse
from common.config.run import RunConfig
from common.options import Scalar
from common.privacy.accounts import gdp_of
from common.wire.messages import TRAIN
from deploy.simulation.grid import InProcessGrid, simulate
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.run import run
from studies.lies.liars import LyingGrid, scaled, trained
from tests.support.owners import SHARING, model_of, noisy, owners, total_of
from tests.support.sensors import road_config, rounds_of, sensor
from tests.support.sensors import session as sensor_session
from tests.support.toy_sessions import toy_session, toy_sessions
from tests.support.toys import CATALOGUE, configured, toy_dataset, toy_homes

ON_RULES = ("fedavg", "fedprox", "fedadam", "fedyogi", "fedadagrad", "fedrule", "fedga", "fedrep", "ditto", "local")

MECHANISMS = ("gaussian", "laplace", "privunit")


@pytest.mark.parametrize(
    ("method", "mechanism"),
    [*((m, "gaussian") for m in ON_RULES), *product(("fedrule", "fedga", "local"), ("laplace", "privunit"))],
)
def test_every_method_trains_with_noise(method: str, mechanism: str, tmp_path: Path) -> None:
    config, clients = noisy(tmp_path, method, rounds=2, privacy__mechanism=mechanism), owners(2)
    result = clients.run(config, tmp_path)
    assert (result.status, result.rounds_done) == ("completed", 2)
    assert [(r.answered, r.refused, r.missing) for r in rounds_of(tmp_path)] == [(2, {}, [])] * 2
    due = 0.0 if method == "local" else total_of(config)  # it sends nothing
    assert list(clients.spent(config).values()) == pytest.approx([due] * 2, rel=1e-6)
    assert {c.examples for c in result.clients.values()} == {1}, "how many rules a home has stays hidden"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("method", "releases"), [("ifca", 2), ("fedstl", 3)])
def test_several_releases_of_a_round_share_its_cost(method: str, releases: int, mechanism: str, tmp_path: Path) -> None:
    noise: dict[str, Scalar] = {"privacy__unit": "client", "privacy__epsilon": 20.0, "privacy__mechanism": mechanism}
    own: dict[str, Scalar] = {"recluster_every": 1, **({"cluster_steps": 1} if method == "fedstl" else {})}
    config = road_config(method, **noise, **own)
    sessions = {k + 1: sensor_session(f"client-{k}", (sensor(k),), policy=SHARING) for k in range(3)}
    result = run(InProcessGrid(sessions, 1), config, tmp_path)
    ledgers = [one.releaser.budget.ledger(config.privacy) for one in sessions.values()]
    assert result.status == "completed"
    assert [(r.answered, r.refused) for r in rounds_of(tmp_path)] == [(3, {})] * 2
    assert [len(one.entries()) for one in ledgers] == [2 * releases] * 3
    assert [one.spent() for one in ledgers] == pytest.approx([total_of(config)] * 3, rel=1e-6)


DEVIATIONS = {"gaussian": 2 / math.sqrt(2 * gdp_of(9e5, 1e-5)), "laplace": math.sqrt(2) * 2 / 9e5}
"""σ = 2C/√(2ρ), and √2·b with b = 2C/ε, for C = 1."""


@pytest.mark.parametrize("mechanism", DEVIATIONS)
@pytest.mark.parametrize("method", ["fedavg", "fedprox", "fedrule", "ditto"])
def test_with_a_huge_budget_a_run_differs_by_its_noise_alone(method: str, mechanism: str, tmp_path: Path) -> None:
    """After one round, the model differs by the mean noise of four clients."""
    alike: dict[str, Scalar] = {"rounds": 1, "weighting": "uniform", "local_steps": 1, "lr": 0.01}
    huge: dict[str, Scalar] = {"privacy__epsilon": 9e5, "privacy__clip": 50.0, "privacy__mechanism": mechanism}
    owners(4).run(noisy(tmp_path, method, **alike, **huge), tmp_path / "noisy")
    owners(4).run(noisy(tmp_path, method, **alike, privacy__unit="none"), tmp_path / "plain")
    released, plain = model_of(tmp_path / "noisy"), model_of(tmp_path / "plain")
    away = np.concatenate([(released[name] - plain[name]).ravel() for name in plain])
    assert len(away) > 100
    assert away.std() == pytest.approx(50 * DEVIATIONS[mechanism] / math.sqrt(4), rel=0.2)
    assert abs(away.mean()) < 4 * away.std() / math.sqrt(len(away))


def test_only_a_seeded_generator_repeats_noise(tmp_path: Path) -> None:
    config, data = noisy(tmp_path, rounds=2), toy_dataset(3)
    seeds = {"first": 7, "again": 7, "other": 8, "fresh": None, "anew": None}
    models = {n: simulate(config, data, tmp_path / n, noise_seed=s).model_sha256 for n, s in seeds.items()}
    assert models["first"] == models["again"]
    assert len(set(models.values())) == 4


def test_control_variates_of_released_values_sum_to_zero(tmp_path: Path) -> None:
    """Σδ_k = 0 (§1.4), for a mean of clipped and noisy gradients."""
    clients = owners(3)
    clients.run(noisy(tmp_path, "fedrule", rounds=4, weighting="uniform", privacy__clip=0.05), tmp_path)
    deltas = [clients.stores[f"client-{k}"].load("toy").groups["delta"] for k in range(3)]
    for name in deltas[0]:
        each = np.stack([delta[name].numpy() for delta in deltas])
        assert np.abs(each).max() > 0
        np.testing.assert_allclose(each.sum(0), 0, atol=1e-5 * np.abs(each).max())


@pytest.mark.parametrize("control", ["grad_mean", "eq3"])
@pytest.mark.parametrize("unit", ["none", "client"])
def test_gradients_contain_no_client_only_parameters(control: str, unit: str, tmp_path: Path) -> None:
    flat: dict[str, Scalar] = {"method": "fedrule", "task": "ratings", "model": "paper", "rounds": 3, "run-id": "toy"}
    flat |= {"algorithm.fedrule.control": control, "training.optimizer": "sgd", "federation.min-clients": 1}
    simulate(parse({**flat, "privacy.unit": unit}), read_all("ratings", "demo:0-3"), tmp_path)
    assert [(r.answered, r.refused) for r in rounds_of(tmp_path)] == [(3, {})] * 3


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
