"""Examples of a finished run's answers."""

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.data.read import read_all
from common.config.parse import parse
from common.errors import DataError
from common.tasks.registry import TASKS
from deploy.cli.options import DataRequest
from deploy.federation.runs import remember
from deploy.pages import answers
from deploy.pages.answers import FILE, add_examples
from deploy.simulation.grid import simulate
from deploy.tasks.registry import DEPLOY_TASKS
from deploy.tasks.traffic.words import describe_clusters
from server.record.folder import Checkpoint, RunDirectory
from server.record.result import Result

SOURCES = {
    "markets": "demo:0-3",
    "traffic": "demo:0-4",
    "rules": "demo:0-8",
    "sessions": "demo:0-8",
    "ratings": "demo:0-6",
}


def train(root: Path, task: str, source: str = "", *, is_generated: bool = True) -> tuple[Result, RunDirectory]:
    """Train one round of a task as `simulate` does."""
    source = source or SOURCES[task]
    flat = {"method": "fedavg", "task": task, "rounds": 1, "run-id": task, "federation.min-clients": 1}
    remember(root / task, "simulate", source if is_generated else "table.csv", 0)
    return simulate(parse(flat), read_all(task, source), root), RunDirectory(root, task)


def stored(folder: RunDirectory) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder.path / FILE).read_text("utf-8"))["examples"]
    return found


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_examples(task: str, tmp_path: Path) -> None:
    result, folder = train(tmp_path, task)
    notes: list[str] = []
    add_examples(result, folder, DataRequest(), notes.append, wants_own=False)
    assert notes == []
    assert stat.S_IMODE((folder.path / FILE).stat().st_mode) == 0o600
    found = stored(folder)
    assert 1 <= len(found) <= 3
    for one in found:
        if "times" in one:
            columns = [one[name] for name in ("times", "forecast", "low", "high", "truth")]
            assert len({len(column) for column in columns}) == 1
            assert all(isinstance(value, float) for value in one["forecast"])
        else:
            assert 1 <= len(one["rows"]) <= 5
            assert all(len(row) == len(one["columns"]) and all(isinstance(t, str) for t in row) for row in one["rows"])


def test_own_data_have_examples_only_if_wanted(tmp_path: Path) -> None:
    result, folder = train(tmp_path, "ratings", is_generated=False)
    add_examples(result, folder, DataRequest("demo:0-6"), print, wants_own=False)
    assert not (folder.path / FILE).exists()
    add_examples(result, folder, DataRequest("demo:0-6"), print, wants_own=True)
    assert len(stored(folder)) == 3


def test_clusters_are_described_without_data(tmp_path: Path) -> None:
    flat = {"method": "fedstl", "task": "traffic", "rounds": 1, "run-id": "r1", "federation.min-clients": 1}
    result = simulate(parse(flat), read_all("traffic", "demo:0-4"), tmp_path)
    folder = RunDirectory(tmp_path, "r1")
    add_examples(result, folder, None, print, wants_own=False)
    content = json.loads((folder.path / FILE).read_text("utf-8"))
    assert content["examples"] == []
    assert content["clusters"]
    assert all("on working days highest at" in text for text in content["clusters"].values())
    [event] = [event for event in folder.events() if event.event == "round"]
    assert {str(j) for j in event.clusters.values()} == content["clusters"].keys()


def test_odd_bounds_of_clients_are_left_out() -> None:
    week, one = np.zeros((168, 1)), np.array(0)
    groups = {
        "cluster": {"a": one, "b": np.array(1), "c": np.array(2)},
        "low": {"a": week, "b": np.full((168, 1), np.nan), "c": np.zeros(3)},
        "high": {"a": week + 1, "b": week, "c": np.ones(3)},
    }
    assert [*describe_clusters(Checkpoint(1, 0, groups))] == ["0"]
    assert describe_clusters(Checkpoint(1, 0, {})) == {}


def test_a_failed_run_has_no_examples(tmp_path: Path) -> None:
    result, folder = train(tmp_path, "ratings")
    add_examples(replace(result, status="failed"), folder, DataRequest(), print, wants_own=True)
    assert not (folder.path / FILE).exists()


def test_examples_that_cannot_be_made_do_not_fail_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, folder = train(tmp_path, "ratings", is_generated=False)
    notes: list[str] = []
    add_examples(result, folder, DataRequest(str(tmp_path / "missing.csv")), notes.append, wants_own=True)
    assert len(notes) == 1
    assert "missing.csv" in notes[0]
    assert not (folder.path / FILE).exists()

    def refuse(run: object) -> list[Any]:
        raise DataError("no")

    monkeypatch.setattr(answers, "DEPLOY_TASKS", {"ratings": replace(DEPLOY_TASKS["ratings"], examples=refuse)})
    add_examples(result, folder, DataRequest("demo:0-6"), notes.append, wants_own=True)
    assert notes[1:] == ["no examples: no"]


def test_a_task_of_a_package_needs_no_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, folder = train(tmp_path, "ratings")
    monkeypatch.setattr(answers, "DEPLOY_TASKS", {"ratings": replace(DEPLOY_TASKS["ratings"], everybody=None)})
    add_examples(result, folder, DataRequest(), print, wants_own=True)
    monkeypatch.setattr(answers, "DEPLOY_TASKS", {})
    add_examples(result, folder, DataRequest(), print, wants_own=True)
    assert not (folder.path / FILE).exists()
