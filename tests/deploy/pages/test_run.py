"""Record of a run: finished, failed, running, resumed."""

import math
from pathlib import Path

import pytest

from common.errors import ConfigError
from common.metrics import EXAMPLES
from deploy.pages.view import absences, client_values, measure, read
from server.record.events import Finish, RoundEvent, Start
from server.record.folder import RunDirectory
from tests.support.run_folders import MakeRun


def round_(number: int, loss: float = 0.5, **options: object) -> RoundEvent:
    fixed = {"rounds": 9, "seconds": 1.0, "answered": 1, "asked": 1, "bytes_down": 0, "bytes_up": 0}
    return RoundEvent(round=number, loss=loss, **fixed | options)  # type: ignore[arg-type]


def test_a_completed_run(fake_run: MakeRun) -> None:
    history = read(fake_run("r1", rounds=8, clients=3))
    assert (history.run, history.status, history.title) == ("r1", "completed", "fedrule on rules")
    assert history.config["algorithm.fedrule.lam"] == 1.0
    assert history.series("auc")[0] == list(range(1, 9))
    assert history.result is not None
    assert history.final == history.result.metrics
    assert len(client_values(history, EXAMPLES)) == len(client_values(history, measure("auc"))) == 3
    assert client_values(history, measure("nothing")) == []


def test_a_running_run_shows_its_last_evaluated_round(fake_run: MakeRun) -> None:
    path = fake_run("r1", rounds=8, status="running")
    RunDirectory(path.parent, "r1").append(round_(9))
    history = read(path)
    assert (history.status, history.result) == ("unfinished", None)
    assert history.final == history.rounds[7].metrics
    assert client_values(history, EXAMPLES) == []


def test_a_failed_run_has_its_reason(fake_run: MakeRun) -> None:
    history = read(fake_run("r1", rounds=3, status="failed"))
    assert (history.status, history.reason) == ("failed", "1 of 4 clients answered, 2 are needed")


def test_repeated_rounds_after_a_resume_count_once(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path, "r1")
    run.create({}, {})
    start = Start(run="r1", method="fedrule", task="rules", model="default", seed=0, rounds=9, time=5.0)
    for event in (
        start,
        round_(1),
        round_(2, 0.4),
        Finish(status="failed", reason="x"),
        start,
        round_(2, 0.3),
        round_(3),
    ):
        run.append(event)
    history = read(run.path)
    assert [(r.round, r.loss) for r in history.rounds] == [(1, 0.5), (2, 0.3), (3, 0.5)]
    assert (history.status, history.started) == ("unfinished", 5.0)


def test_metrics_of_test_data_are_separate_from_earlier_rounds(fake_forecasts: MakeRun) -> None:
    assert read(fake_forecasts(rounds=4)).series("profile_mse") == ([1, 2, 3], [0.3] * 3)
    assert read(fake_forecasts(rounds=1)).series("profile_mse") == ([1], [0.3]), "better than nothing"


def test_clusters_are_listed_by_client(fake_forecasts: MakeRun) -> None:
    stays = read(fake_forecasts(rounds=5, clients=4)).clusters
    assert stays["client-3"] == [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1)]
    assert stays["client-2"] == [(r, 2) for r in range(1, 6)]
    assert read(fake_forecasts(method="fedavg")).clusters == {}


def test_no_such_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run 'r9'"):
        read(tmp_path / "r9")


def test_absences_are_listed_as_ranges() -> None:
    gone = [round_(n, missing=["c3"] if n in (2, 3, 4, 7) else []) for n in range(1, 9)]
    refused = round_(9, refused={"c1": "loss is NaN"}, loss=math.nan)
    assert absences((*gone, refused)) == [("c3", "did not answer", "2–4, 7"), ("c1", "loss is NaN", "9")]
    many = round_(9, refused={f"c{k}": "loss is NaN" for k in range(600)}, loss=math.nan)
    [(names, why, rounds)] = absences((many,))
    assert (names[-12:], why, rounds) == ("and 592 more", "loss is NaN", "9")
