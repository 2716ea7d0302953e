"""Environment variables of the server."""

from pathlib import Path

import pytest

from server.settings import ServerSettings


def test_the_environment_sets_the_folder_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNS", "/elsewhere")
    assert ServerSettings().runs == Path("runs")
    monkeypatch.setenv("FEDLOOM_RUNS", "/data/runs")
    assert ServerSettings().runs == Path("/data/runs")


@pytest.mark.parametrize("name", ["nodes", "processes"])
def test_the_environment_sets_the_folders_of_a_federation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert getattr(ServerSettings(), name) is None
    monkeypatch.setenv(f"FEDLOOM_{name.upper()}", "/data/here")
    assert getattr(ServerSettings(), name) == Path("/data/here")
