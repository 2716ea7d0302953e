"""Data splits of a run's metrics, and its launch record."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.cli.app import app
from deploy.federation.runs import Origin, origin_of
from server.record.events import RoundEvent
from server.record.folder import RunDirectory

WITH_VALIDATION = ("--set", "tasks.ratings.validation-share=0.2")


def simulate(runs: Path, *words: str) -> RunDirectory:
    command = [
        "simulate",
        "--task",
        "ratings",
        "--method",
        "fedavg",
        "--data",
        "demo:0-12",
        "--rounds",
        "3",
        "--run-id",
        "r1",
        *words,
    ]
    done = CliRunner().invoke(app, command, env={"FEDLOOM_RUNS": str(runs)})
    assert done.exit_code == 0, done.exception
    return RunDirectory(runs, "r1")


@pytest.mark.parametrize(
    ("words", "splits"), [(WITH_VALIDATION, ["validation", "validation", "test"]), ((), ["", "", ""])]
)
def test_every_round_and_the_best_name_their_split(words: tuple[str, ...], splits: list[str], tmp_path: Path) -> None:
    folder = simulate(tmp_path, *words)
    assert [event.split for event in folder.events() if isinstance(event, RoundEvent)] == splits
    result = folder.result()
    assert result is not None
    assert result.best is not None
    assert result.best.split == splits[0]
    assert origin_of(folder.path) == Origin("simulate", "demo:0-12", 0)
    page = (folder.path / "report.html").read_text("utf-8")
    assert "fedloom simulate --method fedavg --task ratings --rounds 3 --seed 0 --data demo:0-12" in page
