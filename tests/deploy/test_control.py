"""Messages about a SuperLink that refuses, and the app that it receives."""

import json
import tomllib
from pathlib import Path

import pytest

from common.config.run import RunConfig
from common.errors import ConnectError, FedloomError, RunError
from deploy import control
from deploy.bundle import make_app
from deploy.control import Control
from deploy.keys import make_node_key
from deploy.processes import free_port

GREETING = """Using SuperLink connection 'fedloom'
Flower App configuration warnings in '/x/pyproject.toml':
- Recommended property "license" missing in [project]
"""
ABSENT = "Connection to the SuperLink is unavailable. Please check your network connection and 'address' in it."


@pytest.mark.parametrize(
    ("reason", "kind", "message"),
    [
        ("App is too large\n", RunError, "cannot start the run: App is too large"),
        (ABSENT, ConnectError, "cannot start the run: no SuperLink answers at nowhere:9; check --control and --ca"),
    ],
)
def test_a_fault_is_reported_without_the_greeting_of_flower(
    reason: str, kind: type[FedloomError], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "flwr"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/answer.json\n")
    program.chmod(0o755)
    (tmp_path / "answer.json").write_text(json.dumps({"success": False, "error-message": GREETING + reason}))
    monkeypatch.setattr(control, "flower_program", lambda name: program)
    app = make_app(tmp_path / "app", RunConfig())
    with pytest.raises(kind) as caught:
        Control("nowhere:9", None, tmp_path / "home").submit(app, {})
    assert str(caught.value).startswith(message)
    assert "Recommended" not in str(caught.value)


def test_the_app_has_all_properties_that_flower_recommends(tmp_path: Path) -> None:
    project = tomllib.loads((make_app(tmp_path / "app", RunConfig(run_id="one")) / "pyproject.toml").read_text())
    assert project["project"]["description"] == "fedloom run one"
    assert {"name", "version", "license"} <= project["project"].keys()


def test_the_app_is_closed_to_other_users(tmp_path: Path) -> None:
    app = make_app(tmp_path / "app", RunConfig(run_id="one"))
    copies = [path for path in app.rglob("*") if path.name != "pyproject.toml"]
    assert copies
    assert all(path.stat().st_mode & 0o077 == 0 for path in copies)


def test_a_control_port_where_nothing_answers_is_named(tmp_path: Path) -> None:
    control = Control(f"127.0.0.1:{free_port()}", None, tmp_path / "home")
    make_node_key(tmp_path / "node.key")
    for call in (
        lambda: control.register(tmp_path / "node.key.pub"),
        lambda: control.status(1),
        lambda: control.stop(1),
    ):
        with pytest.raises(ConnectError, match=r"no SuperLink answers at 127\.0\.0\.1:\d+; check --control and --ca"):
            call()
