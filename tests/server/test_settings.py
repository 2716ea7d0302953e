"""The server's environment."""

from pathlib import Path

import pytest

from server.settings import ServerSettings


def test_runs_lie_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNS", "/elsewhere")
    assert ServerSettings().runs == Path("runs")
    monkeypatch.setenv("FEDLOOM_RUNS", "/data/runs")
    assert ServerSettings().runs == Path("/data/runs")
