"""Supervision of a federation while a run continues."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from common.errors import RunError
from deploy import watch
from deploy.control import Control
from deploy.processes import Processes
from deploy.watch import Pulse


class Controls(Control):
    """Control API that refuses one key some times and another key always."""

    def __init__(self, home: Path, failures: int) -> None:
        super().__init__("nowhere:9", None, home)
        self.failures, self.registered = failures, list[str]()

    def register(self, public_key: Path) -> int | None:
        self.registered.append(public_key.name)
        if public_key.name == "broken.pub" or self.registered.count("half.pub") <= self.failures:
            raise RunError(f"registering {public_key.name}: it is no key")
        return 7


def test_a_key_that_could_not_be_registered_is_retried_and_the_failure_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("half.pub", "broken.pub"):
        (tmp_path / name).write_text("")
    monkeypatch.setattr(watch, "ADMIT_SECONDS", 0.0)
    output, control = StringIO(), Controls(tmp_path / "control", failures=2)
    pulse = Pulse(
        control, 1, Processes(), None, tmp_path / "metrics.jsonl", 0, tmp_path, Console(file=output, width=200)
    )
    for _ in range(4):
        pulse._admit()
    assert [control.registered.count(name) for name in ("half.pub", "broken.pub")] == [3, 4]
    assert sorted(output.getvalue().splitlines()) == [
        "admitted half.pub",
        "registering broken.pub: it is no key",
        "registering half.pub: it is no key",
    ]
