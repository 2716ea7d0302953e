"""ServerApp: its reading of the configuration that Flower passes."""

from pathlib import Path
from typing import Any

import pytest
from flwr.app import Context, RecordDict
from flwr.serverapp import Grid

from common.options import Scalar
from server import app as server_app


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({}, 20.0),
        ({"federation.upload": 90.0}, 90.0),
        ({"federation.upload": 90.0, "federation.deadline": 60.0}, 60.0),
    ],
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
