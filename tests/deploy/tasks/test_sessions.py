"""Command `recommend` for a session."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.data.read import read_all
from common.config.parse import parse
from deploy.cli.app import app
from deploy.simulation import simulate


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run of six visitors."""
    folder = tmp_path_factory.mktemp("runs")
    flat = {"method": "fedavg", "task": "sessions", "rounds": 1, "run-id": "shop", "federation.min-clients": 1}
    simulate(parse(flat), read_all("sessions", "demo:0-6"), folder)
    return folder


def recommend(*words: str) -> Result:
    done = CliRunner().invoke(app, ["recommend", "--data", "demo:0-6", *words])
    assert done.exit_code == 0, done.exception
    return done


def test_a_session_without_a_user_uses_no_history(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(runs))
    clicks = ("--session", "sea waders, telescopic line spool")
    assert recommend(*clicks).stdout.startswith(
        "anybody after sea waders, telescopic line spool, by run shop (round 1, the last)\n"
    )
    assert recommend(*clicks, "--user", "visitor-00003").stdout.startswith("visitor-00003 after sea waders,")
    user = ("--user", "visitor-00003")
    without, with_history = (json.loads(recommend(*clicks, *words, "--json").stdout) for words in ((), user))
    assert without != with_history
