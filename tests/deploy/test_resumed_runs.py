"""A run that goes on: its folder tells of all of it, whenever it was interrupted."""

from pathlib import Path
from typing import Any

import pytest

from client.session import Session
from common.config.run import RunConfig
from common.errors import RefusedError
from common.wire.messages import EvaluateReply, EvaluateRequest
from deploy.simulation import simulate
from server.artifacts import RunDirectory
from server.events import Result, Round
from server.journal import Journal
from tests.support.toys import CATALOGUE, configured, toy_dataset


class PullThePlugError(Exception):
    """The machine went down."""


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    """Three rounds that speak the toy vocabulary."""
    path = tmp_path / "catalogue.json"
    path.write_text(CATALOGUE.to_json(), "utf-8")
    return configured("fedavg", rounds=3, federation__min_clients=1, federation__wait=0.1, catalogue=str(path))


def trained(config: RunConfig, runs: Path, **options: Any) -> Result:
    return simulate(config.model_copy(update=options), toy_dataset(3), runs)


def rounds(runs: Path) -> list[Round]:
    return [event for event in RunDirectory(runs, "toy").events() if event.event == "round"]


def crash_in(monkeypatch: pytest.MonkeyPatch, verb: str, before: bool) -> None:
    """Pull the plug in round 2, before or after the journal has noted something."""
    note = getattr(Journal, verb)

    def crash(journal: Journal, *about: Any) -> None:
        second = 2 in (about[0], getattr(getattr(about[0], "state", None), "round", 0))
        if not (second and before):
            note(journal, *about)
        if second:
            raise PullThePlugError

    monkeypatch.setattr(Journal, verb, crash)


@pytest.mark.parametrize(
    ("verb", "before"), [("record_training", False), ("record_evaluation", True), ("record_evaluation", False)]
)
def test_traffic_is_that_of_all_rounds_wherever_the_run_was_torn(
    verb: str, before: bool, config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        crash_in(patch, verb, before)
        with pytest.raises(PullThePlugError):
            trained(config, tmp_path)
    result = trained(config, tmp_path, resume=True)
    lines = rounds(tmp_path)
    assert len(lines) == (3 if (verb, before) == ("record_evaluation", False) else 2)
    assert result.bytes_down == sum(line.bytes_down for line in lines) > 0
    assert result.bytes_up == sum(line.bytes_up for line in lines) > 0


def test_a_run_torn_in_its_last_evaluation_is_measured_when_it_goes_on(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    through = trained(config.model_copy(update={"rounds": 2}), tmp_path / "through")
    with monkeypatch.context() as patch:
        crash_in(patch, "record_evaluation", before=True)
        with pytest.raises(PullThePlugError):
            trained(config, tmp_path, rounds=2)
    result = trained(config, tmp_path, rounds=2, resume=True)
    assert (result.status, result.rounds_done, result.model_sha256) == ("completed", 2, through.model_sha256)
    assert result.metrics == through.metrics != {}
    assert result.clients == through.clients


def test_a_finished_run_that_is_given_more_rounds_is_one_of_more_rounds(config: RunConfig, tmp_path: Path) -> None:
    through = trained(config, tmp_path / "through", rounds=4)
    trained(config, tmp_path)
    folder = RunDirectory(tmp_path, "toy")
    assert folder.config()["rounds"] == 3
    for number in (4, 5):
        result = trained(config, tmp_path, rounds=number, resume=True)
        assert (folder.config()["rounds"], folder.config()["resume"]) == (number, False)
        assert (result.rounds, result.rounds_done) == (number, number)
        assert result.bytes_up == sum(line.bytes_up for line in rounds(tmp_path))
    assert [line.metrics for line in rounds(tmp_path)[:4]] == [line.metrics for line in rounds(tmp_path / "through")]
    assert through.best is not None


def test_the_best_round_is_not_forgotten(config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained(config, tmp_path)
    lines = rounds(tmp_path)
    best = {"metrics": {**lines[2].metrics, "loss": 0.0}}
    text = (tmp_path / "toy" / "metrics.jsonl").read_text()
    altered = text.replace(f'"loss":{lines[2].metrics["loss"]!r}', '"loss":0.0')
    assert altered != text
    (tmp_path / "toy" / "metrics.jsonl").write_text(altered)
    result = trained(config, tmp_path, rounds=4, resume=True)
    assert result.best is not None
    assert (result.best.round, result.best.metrics) == (3, best["metrics"])


def test_who_trained_and_told_no_metrics_is_named(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = Session.evaluate

    def busy(session: Session, request: EvaluateRequest) -> EvaluateReply:
        if request.round == 3 or session.client == "client-1":
            raise RefusedError("busy")
        return measure(session, request)

    monkeypatch.setattr(Session, "evaluate", busy)
    result = trained(config, tmp_path)
    lines = rounds(tmp_path)
    assert [line.answered for line in lines] == [3, 3, 3]
    assert [sorted(line.refused) for line in lines] == [["client-1"]] * 2 + [["client-0", "client-1", "client-2"]]
    assert lines[0].refused == {"client-1": "evaluation: busy"}
    assert (result.metrics, result.clients) == ({}, {}), "no metrics of an older model"
