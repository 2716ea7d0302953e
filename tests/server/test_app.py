"""ServerApp: its reading of the configuration that Flower passes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from flwr.app import Context, RecordDict

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
    options: dict[str, Scalar], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    @contextmanager
    def uploads(deadline: float) -> Iterator[None]:
        given.append(deadline)
        yield

    monkeypatch.setattr(server_app, "quick_uploads", uploads)
    monkeypatch.setattr(server_app, "close_to_others", lambda: None)  # changes the whole process
    monkeypatch.setattr(server_app, "run", lambda grid, config, runs, nodes: None)
    nobody: Any = None
    server_app.main(nobody, Context(1, 1, {}, RecordDict(), {"method": "fedavg", **options}))
    assert given == [seconds]
