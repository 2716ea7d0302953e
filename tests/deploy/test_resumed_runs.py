"""Resumed runs: their folder describes all rounds, after an interruption at any point."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from client.session import Session
from client.state import DiskStore, Store
from common.config.run import RunConfig
from common.errors import RefusedError
from common.tasks.registry import TASKS
from common.wire.messages import EvaluateReply, EvaluateRequest
from deploy.simulation.grid import InProcessGrid, simulate
from server.record.folder import RunDirectory
from server.record.journal import Journal
from server.record.result import Result
from server.run import run
from tests.support.owners import judge_by_loss
from tests.support.sensors import rounds_of, stores
from tests.support.toy_sessions import toy_sessions
from tests.support.toys import toy_dataset


@pytest.fixture(autouse=True)
def _chosen_by_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose by the objective, as in tasks without a comparison; the toy clients report a loss only."""
    monkeypatch.setitem(TASKS._loaded, "rules", replace(TASKS["rules"], comparison=None))


class PowerFailureError(Exception):
    """Interruption of a run."""


@pytest.fixture
def config(settings: Callable[..., RunConfig]) -> RunConfig:
    """Return a configuration of three rounds of FedAvg."""
    return settings("fedavg")


def trained(config: RunConfig, runs: Path, **options: Any) -> Result:
    return simulate(config.model_copy(update=options), toy_dataset(3), runs)


def interrupt(monkeypatch: pytest.MonkeyPatch, method: str, before: bool) -> None:
    """Fail in round 2, before or after a method of the journal has written."""
    write = getattr(Journal, method)

    def fail(journal: Journal, *arguments: Any) -> None:
        second = 2 in (arguments[0], getattr(getattr(arguments[0], "state", None), "round", 0))
        if not (second and before):
            write(journal, *arguments)
        if second:
            raise PowerFailureError

    monkeypatch.setattr(Journal, method, fail)


@pytest.mark.parametrize(
    ("method", "options", "disk"),
    [
        ("fedavg", {"momentum": 0.9}, False),
        ("fedadam", {}, False),
        ("fedrule", {"optimizer": "sgd", "control": "eq3", "lr": 0.3}, False),
        ("fedrule", {}, True),
        ("fedrule", {"server_optimizer": "adam", "federation__cohort": 0.5}, True),
    ],
)
def test_an_interrupted_run_ends_with_the_model_of_an_uninterrupted_one(
    method: str,
    options: dict[str, Any],
    disk: bool,
    settings: Callable[..., RunConfig],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = settings(method, **options)
    through = run(InProcessGrid(toy_sessions(stores(3)), 1), config, tmp_path / "through")

    states: list[Store] = [DiskStore(tmp_path / f"s{k}") for k in range(3)] if disk else stores(3)
    with monkeypatch.context() as patch:
        interrupt(patch, "record_evaluation", before=False)
        with pytest.raises(PowerFailureError):
            run(InProcessGrid(toy_sessions(states), 1), config, tmp_path / "torn")
    assert RunDirectory(tmp_path / "torn", "toy").result() is None

    again = config.model_copy(update={"resume": True})
    resumed = run(InProcessGrid(toy_sessions(states), 1), again, tmp_path / "torn")
    assert (resumed.rounds_done, resumed.model_sha256) == (3, through.model_sha256)


def test_connected_clients_keep_their_prepared_data_when_the_server_starts_again(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    through = run(InProcessGrid(toy_sessions(stores(3)), 1), config, tmp_path / "through")
    prepared: list[str] = []
    sessions = toy_sessions(stores(3))
    for session in sessions.values():
        build = session.runs._build_learner

        def count(*about: Any, client: str = session.client, build: Any = build) -> Any:
            prepared.append(client)
            return build(*about)

        monkeypatch.setattr(session.runs, "_build_learner", count)
    with monkeypatch.context() as patch:
        interrupt(patch, "record_evaluation", before=False)
        with pytest.raises(PowerFailureError):
            run(InProcessGrid(sessions, 1), config, tmp_path / "torn")
    resumed = run(InProcessGrid(sessions, 1), config.model_copy(update={"resume": True}), tmp_path / "torn")
    assert sorted(prepared) == [session.client for session in sessions.values()], "once each"
    assert (resumed.rounds_done, resumed.model_sha256) == (3, through.model_sha256)


@pytest.mark.parametrize(
    ("method", "before"), [("record_training", False), ("record_evaluation", True), ("record_evaluation", False)]
)
def test_no_line_and_none_of_its_bytes_is_lost_by_any_interruption(
    method: str, before: bool, config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    through = trained(config, tmp_path / "through")
    with monkeypatch.context() as patch:
        interrupt(patch, method, before)
        with pytest.raises(PowerFailureError):
            trained(config, tmp_path)
    result = trained(config, tmp_path, resume=True)
    rounds = rounds_of(tmp_path)
    unbroken = rounds_of(tmp_path / "through")
    assert [(e.round, e.metrics, e.loss, e.answered) for e in rounds] == [
        (e.round, e.metrics, e.loss, e.answered) for e in unbroken
    ]
    assert result.bytes_down == sum(event.bytes_down for event in rounds) == through.bytes_down > 0
    assert result.bytes_up == sum(event.bytes_up for event in rounds) == through.bytes_up > 0


def test_a_run_interrupted_in_its_last_evaluation_is_evaluated_when_resumed(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    through = trained(config, tmp_path / "through", rounds=2)
    with monkeypatch.context() as patch:
        interrupt(patch, "record_evaluation", before=True)
        with pytest.raises(PowerFailureError):
            trained(config, tmp_path, rounds=2)
    result = trained(config, tmp_path, rounds=2, resume=True)
    assert (result.status, result.rounds_done, result.model_sha256) == ("completed", 2, through.model_sha256)
    assert result.metrics == through.metrics != {}
    assert result.clients == through.clients


def test_a_finished_run_with_more_rounds_equals_a_longer_run(config: RunConfig, tmp_path: Path) -> None:
    trained(config, tmp_path / "through", rounds=4)
    trained(config, tmp_path)
    folder = RunDirectory(tmp_path, "toy")
    assert folder.config()["rounds"] == 3
    for number in (4, 5):
        result = trained(config, tmp_path, rounds=number, resume=True)
        assert (folder.config()["rounds"], folder.config()["resume"]) == (number, False)
        assert (result.rounds, result.rounds_done) == (number, number)
        assert result.bytes_up == sum(event.bytes_up for event in rounds_of(tmp_path))
    through = [event.metrics for event in rounds_of(tmp_path / "through")]
    assert [event.metrics for event in rounds_of(tmp_path)[:4]] == through


def test_the_best_round_of_before_is_kept(config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge_by_loss(monkeypatch)
    trained(config, tmp_path)
    metrics = rounds_of(tmp_path)[2].metrics
    path = tmp_path / "toy" / "metrics.jsonl"
    text = path.read_text()
    altered = text.replace(f'"loss":{metrics["loss"]!r}', '"loss":0.0')
    assert altered != text
    path.write_text(altered)
    result = trained(config, tmp_path, rounds=4, resume=True)
    assert result.best is not None
    assert (result.best.round, result.best.metrics) == (3, {**metrics, "loss": 0.0})


def test_trained_clients_without_metrics_are_named(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = Session.evaluate

    def refuse(session: Session, request: EvaluateRequest) -> EvaluateReply:
        if request.round == 3 or session.client == "client-1":
            raise RefusedError("busy")
        return evaluate(session, request)

    monkeypatch.setattr(Session, "evaluate", refuse)
    result = trained(config, tmp_path)
    rounds = rounds_of(tmp_path)
    assert [event.answered for event in rounds] == [3, 3, 3]
    assert [sorted(event.refused) for event in rounds] == [["client-1"]] * 2 + [["client-0", "client-1", "client-2"]]
    assert rounds[0].refused == {"client-1": "evaluation: busy"}
    of_clients = [client.metrics for client in result.clients.values()]
    assert (result.metrics, of_clients) == ({}, [{}, {}, {}]), "no metrics of an older model"
