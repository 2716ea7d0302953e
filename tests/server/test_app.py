"""ServerApp: its reading of the configuration that Flower passes, and of environment variables."""

from pathlib import Path
from typing import Any

import pytest
from flwr.app import Context, RecordDict
from flwr.serverapp import Grid

from common.options import Scalar
from server import app as server_app
from server.settings import ServerSettings


@pytest.mark.parametrize(
    ("options", "seconds"),
    [({}, 20.0), ({"federation.upload": 90.0}, 90.0), ({"federation.upload": 90.0, "federation.deadline": 60.0}, 60.0)],
)
def test_an_upload_takes_at_most_its_configured_time_and_at_most_a_round(
    options: dict[str, Scalar], seconds: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(grid: Grid, given: float) -> None:
        raise RuntimeError(f"{given:g} s")

    monkeypatch.setattr("server.run.connect", stop)
    monkeypatch.setattr(server_app, "close_to_others", lambda: None)  # changes the whole process
    monkeypatch.chdir(tmp_path)
    nobody: Any = None
    with pytest.raises(RuntimeError, match=f"^{seconds:g} s"):
        server_app.main(nobody, Context(1, 1, {}, RecordDict(), {"method": "fedavg", **options}))


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
