"""`recommend` as a command, of ratings."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.data.parts import read_all
from common.config import parse
from common.errors import DataError
from deploy.cli import app
from deploy.simulation import simulate


@pytest.fixture(scope="module", params=["default", "paper"])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of six raters."""
    folder = tmp_path_factory.mktemp("runs")
    flat = {"method": "fedavg", "task": "ratings", "model": request.param, "rounds": 1, "run-id": "films"}
    simulate(parse({**flat, "federation.min-clients": 1}), read_all("ratings", "demo:0-6"), folder)
    return folder


def recommend(*words: str) -> Result:
    return CliRunner().invoke(app, ["recommend", "--data", "demo:0-6", *words])


def test_films_not_rated_yet_beside_the_own_mean(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(runs))
    done = recommend("--user", "rater-00004", "--top", "3", "--json")
    assert done.exit_code == 0, done.exception
    found = json.loads(done.stdout)
    ratings = [film["rating"] for film in found]
    assert len(found) == 3
    assert ratings == sorted(ratings, reverse=True)
    assert 0 < ratings[-1] <= ratings[0] <= 5
    assert len({film["own_mean"] for film in found}) == 1

    shown = recommend("--user", "rater-00004", "--top", "3").stdout
    assert all(film["product"] in shown for film in found)
    assert f"{found[0]['own_mean']:.2f}" in shown


def test_somebody_unknown_is_told_who_is_there(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(runs))
    done = recommend("--user", "rater-4")
    assert isinstance(done.exception, DataError)
    assert "no user 'rater-4' among its 6 users; did you mean 'rater-0000" in str(done.exception)
