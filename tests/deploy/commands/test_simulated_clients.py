"""Clients of a resumed simulation are those of the run."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from common.config.flatten import flatten
from common.config.parse import parse
from common.errors import ConfigError
from common.tasks.rules.demo import demo_catalogue
from deploy.cli.app import app
from deploy.commands.resume import run_partition
from deploy.report.launch_record import Command, remember
from server.artifacts import RunDirectory
from server.events import Round


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a run that has begun."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDLOOM_RUNS", str(tmp_path / "runs"))
    config = flatten(parse({"method": "fedrule", "rounds": 3, "seed": 1, "run-id": "exact"}))
    RunDirectory(Path("runs"), "exact").create(config, json.loads(demo_catalogue().to_json()))
    return tmp_path / "runs"


def launched(run: str, command: Command, data: str, clients: int) -> RunDirectory:
    folder = RunDirectory(Path("runs"), run)
    remember(folder.path, command, data, clients)
    return folder


def test_a_simulation_goes_on_with_its_own_clients_and_made_data() -> None:
    folder = launched("exact", "simulate", "demo:0-9", 3)
    assert run_partition(folder, "demo", None) == run_partition(folder, "demo:0-9", 3) == ("demo:0-9", 3)
    with pytest.raises(ConfigError, match="continues with its own --clients 3; remove --clients"):
        run_partition(folder, "demo", 2)
    for other in ("demo:0-8", "mine.csv"):
        with pytest.raises(ConfigError, match="continues with its own demo:0-9; remove --data"):
            run_partition(folder, other, None)


def test_a_simulation_of_read_data_has_to_be_told_them_again() -> None:
    """No run writes down where somebody's data lie."""
    folder = launched("exact", "simulate", "mine.csv", 0)
    assert run_partition(folder, "mine.csv", None) == ("mine.csv", 0)
    with pytest.raises(
        ConfigError, match="continues with its own data, whose path is not stored; name them with --data"
    ):
        run_partition(folder, "demo", None)
    with pytest.raises(ConfigError, match="its own --clients 0"):
        run_partition(folder, "mine.csv", 4)


def test_a_run_of_other_processes_is_no_simulation() -> None:
    with pytest.raises(ConfigError, match="was started by fedloom up; resume it with that command"):
        run_partition(launched("exact", "up", "demo", 4), "demo", None)


def test_a_run_whose_start_nobody_noted_is_dealt_as_told() -> None:
    assert run_partition(RunDirectory(Path("runs"), "exact"), "demo:0-9", 3) == ("demo:0-9", 3)


def simulated(words: str) -> Result:
    return CliRunner().invoke(app, ["simulate", *words.split()])


def test_simulate_takes_them_without_being_told(runs: Path) -> None:
    begun = simulated("--run-id short --data demo:0-6 --clients 2 --rounds 1 --method fedavg")
    assert begun.exit_code == 0, begun.exception
    on = simulated("--resume short --rounds 2")
    assert on.exit_code == 0, on.exception
    assert "run short: 2 clients in this process" in on.stderr
    lines = [line for line in RunDirectory(runs, "short").events() if isinstance(line, Round)]
    assert [(line.round, line.answered) for line in lines] == [(1, 2), (2, 2)]
    assert isinstance(simulated("--resume short --rounds 3 --clients 3").exception, ConfigError)
