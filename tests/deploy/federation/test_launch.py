"""Folders of runs that did not start, and what `fedloom budget` says after a simulation."""

import os
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from common.errors import ConfigError, ConnectError
from deploy.cli.app import app
from deploy.federation.runs import remember, removed_unless_started
from deploy.superlink.superlink import free_port
from server.record.process import COMMAND, FOLDER, read_records


def fail(run_id: str) -> None:
    with pytest.raises(KeyboardInterrupt), removed_unless_started(run_id):
        raise KeyboardInterrupt


def test_a_folder_without_a_configuration_is_removed(here: Path) -> None:
    remember(here / "runs" / "r1", "up", "demo", 2)
    (here / "runs" / "r1" / ".lock").touch()
    fail("r1")
    assert not (here / "runs" / "r1").exists()
    fail("never-made")


@pytest.mark.parametrize(
    ("name", "left"), [("config.toml", ["config.toml", "origin.json"]), ("notes.txt", ["notes.txt"])]
)
def test_a_run_that_started_keeps_its_folder_and_any_run_other_files(name: str, left: list[str], here: Path) -> None:
    remember(here / "runs" / "r1", "up", "demo", 2)
    (here / "runs" / "r1" / name).touch()
    fail("r1")
    assert sorted(path.name for path in (here / "runs" / "r1").iterdir()) == left


def test_submit_to_an_absent_superlink_leaves_no_run_and_was_recorded_for_stop(here: Path) -> None:
    done = CliRunner().invoke(app, ["submit", "--run-id", "r1", "--control", f"127.0.0.1:{free_port()}"])
    assert isinstance(done.exception, ConnectError), done.exception
    assert not (here / "runs" / "r1").exists()
    [record] = read_records(here / ".fedloom" / "submit" / FOLDER)
    assert (record.name, record.pid, record.run) == (COMMAND, os.getpid(), "r1")


def test_a_server_on_a_taken_port_leaves_no_run(here: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        done = CliRunner().invoke(app, ["serve", "--run-id", "r1", "--host", "127.0.0.1", "--port", port])
    assert isinstance(done.exception, ConfigError), done.exception
    assert not (here / "runs" / "r1").exists()


def test_the_budget_after_a_simulation_says_that_simulations_keep_no_ledger(here: Path) -> None:
    budget = ["budget", "--state-dir", str(here / "state")]
    assert CliRunner().invoke(app, budget).stdout == "no privacy budget was spent here\n"
    remember(here / "runs" / "r1", "simulate", "demo", 0)
    done = CliRunner().invoke(app, budget, env={"COLUMNS": "60"})
    assert "simulations keep no ledger" in done.stdout
