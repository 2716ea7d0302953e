"""Command `recommend` for an item of a market."""

import json
import re
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.data.read import read_all
from common.config.parse import parse
from common.errors import ConfigError, DataError
from common.options import Scalar
from deploy.cli.app import app
from deploy.simulation.grid import simulate


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run of three markets."""
    folder = tmp_path_factory.mktemp("runs")
    flat: dict[str, Scalar] = {"method": "fedavg", "task": "markets", "rounds": 1, "run-id": "shops"}
    simulate(parse({**flat, "federation.min-clients": 1}), read_all("markets", "demo:3-6"), folder)
    return folder


def recommend(*words: str) -> Result:
    return CliRunner().invoke(app, ["recommend", "--data", "demo:3-6", *words])


def test_items_with_titles_best_first(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(runs))
    done = recommend("--market", "isles", "--item", "P0001", "--top", "3", "--json")
    assert done.exit_code == 0, done.exception
    items = json.loads(done.stdout)
    assert len(items) == 3
    assert all(entry["title"] for entry in items)
    scores = [entry["score"] for entry in items]
    assert scores == sorted(scores, reverse=True)
    shown = recommend("--market", "isles", "--item", "P0001", "--top", "3").stdout
    assert all(entry["item"] in shown for entry in items)
    assert "isles" in shown


def test_unknown_names_are_answered_with_close_ones(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(runs))
    market = recommend("--market", "isle", "--item", "P0001").exception
    assert isinstance(market, DataError)
    assert "no market 'isle' among its 3 markets; did you mean 'isles'?" in str(market)
    item = recommend("--item", "P001").exception
    assert isinstance(item, DataError)
    assert "has no item 'P001'; did you mean 'P0" in str(item)
    nothing = recommend().exception
    assert isinstance(nothing, ConfigError)
    example = re.search(r"--item is missing; .* of market \S+ by its id or title, such as (P\d+)", str(nothing))
    assert example
    assert recommend("--item", example[1]).exit_code == 0
