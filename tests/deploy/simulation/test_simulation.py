"""Runs in one process: the same server and client code as over a network."""

import gc
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from client.data.read import read_all
from client.enrolment import ENROLMENT
from client.session import MODEL, Session
from client.state import MemoryStore
from client.tasks.rules.data.homes import Device, Home, Homes, as_edges
from client.training.participant import Participant
from common.arrays import sha256
from common.config.parse import parse
from common.config.run import RunConfig
from deploy.simulation.grid import RARELY, simulate
from server.record.folder import RunDirectory
from tests.support.sensors import rounds_of
from tests.support.toys import CATALOGUE, METHODS, toy_dataset, toy_homes

Settings = Callable[..., RunConfig]


@pytest.mark.parametrize("method", METHODS)
def test_equal_seeds_result_in_equal_models(method: str, settings: Settings, tmp_path: Path) -> None:
    first, second, other = (
        simulate(settings(method, seed=seed, rounds=2), toy_dataset(3), tmp_path / folder)
        for seed, folder in ((0, "a"), (0, "b"), (1, "c"))
    )
    assert (first.model_sha256, first.metrics) == (second.model_sha256, second.metrics)
    assert other.model_sha256 != first.model_sha256
    assert (first.status, first.rounds_done) == ("completed", 2)
    assert sorted(first.clients) == ["client-0", "client-1", "client-2"]


@pytest.mark.parametrize("method", METHODS)
def test_stacked_clients_train_as_one_at_a_time(method: str, settings: Settings, tmp_path: Path) -> None:
    models = []
    for together in (1, 4):
        simulate(settings(method, rounds=2), toy_dataset(4), tmp_path / str(together), together=together)
        models.append(RunDirectory(tmp_path / str(together), "toy").load_model()[0])
    for name, a in models[0].items():
        np.testing.assert_allclose(models[1][name], a, rtol=1e-3, atol=1e-4)


def test_metrics_of_a_client_with_many_records_of_each_example_are_kept(tmp_path: Path) -> None:
    config = parse({"task": "ratings", "rounds": 1, "run-id": "toy"})  # it enrols with its number of raters
    simulate(config, read_all("ratings", "demo"), tmp_path, clients=2)
    assert [line.refused for line in rounds_of(tmp_path)] == [{}]


def test_the_only_client_of_a_federation_is_not_measured_against_its_past(tmp_path: Path) -> None:
    options = {"method": "fedavg", "rounds": 4, "run-id": "toy", "federation.norm-bound": 0.5}
    simulate(parse({**options, "federation.min-clients": 1}), read_all("rules", "demo:0-12"), tmp_path, clients=1)
    assert [(line.answered, line.refused) for line in rounds_of(tmp_path)] == 4 * [(1, {})]


@pytest.mark.parametrize("updates", ["auto", "dense"])
def test_replies_that_are_handed_over_count_the_bytes_of_messages(
    updates: str, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(rounds=1, federation__updates=updates)
    handed = simulate(config, toy_dataset(4), tmp_path / "handed", together=4)
    monkeypatch.setattr(Session, "passes_unchanged", lambda session, participant: False)
    encoded = simulate(config, toy_dataset(4), tmp_path / "encoded", together=4)
    assert handed.bytes_up == encoded.bytes_up > 1000
    assert handed.model_sha256 == encoded.model_sha256


def test_the_collector_passes_over_clients_until_a_simulation_ends(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learners: list[bool] = []

    def note(session: Session, participant: Participant) -> bool:
        learners.append(any(found is participant.learner for found in gc.get_objects()))
        assert gc.get_threshold() == RARELY
        return True

    monkeypatch.setattr(Session, "passes_unchanged", note)
    before = gc.get_threshold()
    simulate(settings(rounds=1), toy_dataset(4), tmp_path, together=4)
    assert learners == [False] * 4
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == before


@pytest.mark.parametrize(("homes", "clients", "sizes"), [(4, 1, [4]), (7, 3, [2, 2, 3])])
def test_homes_are_partitioned_evenly(
    homes: int, clients: int, sizes: list[int], settings: Settings, tmp_path: Path
) -> None:
    result = simulate(settings(rounds=1), toy_dataset(homes), tmp_path, clients=clients)
    assert result.status == "completed"
    assert sorted(client.examples for client in result.clients.values()) == sizes


def test_a_client_without_training_rules_does_not_change_the_run(settings: Settings, tmp_path: Path) -> None:
    bare = Home("user-bare", (Device("d0", 0), Device("d1", 1)), as_edges([]))
    result = simulate(settings(), Homes((*toy_homes(3), bare), CATALOGUE), tmp_path / "with")
    without = simulate(settings(), Homes(toy_homes(3), CATALOGUE), tmp_path / "without")
    assert result.model_sha256 == without.model_sha256
    assert [(event.asked, event.answered) for event in rounds_of(tmp_path / "with")] == [(3, 3)] * 3


def test_all_files_of_a_run_agree(settings: Settings, tmp_path: Path) -> None:
    result = simulate(settings(), toy_dataset(3), tmp_path)
    folder = RunDirectory(tmp_path, "toy")
    assert sha256(folder.load_model()[0]) == result.model_sha256
    assert [event.event for event in folder.events()] == ["start", "round", "round", "round", "finish"]
    rounds = rounds_of(tmp_path)
    assert rounds[-1].metrics == result.metrics
    assert json.loads((folder.path / "result.json").read_text())["model_sha256"] == result.model_sha256
    assert sum(event.bytes_up for event in rounds) == result.bytes_up > 0


def test_a_cohort_is_a_share_of_the_clients(settings: Settings, tmp_path: Path) -> None:
    simulate(settings(federation__cohort=0.5, rounds=4), toy_dataset(4), tmp_path)
    assert [event.asked for event in rounds_of(tmp_path)] == [2] * 4


def test_rounds_between_evaluations_have_no_metrics_but_the_last_has(settings: Settings, tmp_path: Path) -> None:
    simulate(settings(evaluate_every=2, rounds=5), toy_dataset(2), tmp_path)
    assert [bool(event.metrics) for event in rounds_of(tmp_path)] == [False, True, False, True, True]


def test_a_document_of_all_clients_is_stored_once_and_the_final_model_not_at_all(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise thousands of clients would hold thousands of models in one process."""
    stored: dict[str, list[bytes]] = {}
    write = MemoryStore.write

    def note(store: MemoryStore, run: str, name: str, content: bytes) -> None:
        stored.setdefault(name, []).append(content)
        write(store, run, name, content)

    monkeypatch.setattr(MemoryStore, "write", note)
    simulate(settings("fedavg", rounds=1), toy_dataset(3), tmp_path)
    assert MODEL not in stored
    assert len({id(content) for content in stored[ENROLMENT]}) == 1 < len(stored[ENROLMENT])
