"""The best round of a run by its task's objective, and the best value of comparable runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from deploy.pages import view
from deploy.pages.figures import metric_curves
from deploy.pages.live_data import Batch, Tail, _message
from deploy.pages.report import page
from deploy.pages.view import headlines, measure, read
from tests.support.run_folders import make_forecasts, make_run
from tests.support.ui import a_round, a_start, ask, write_run


def traced(root: Path, task: str, key: str, values: list[float], **fields: float) -> Path:
    """Write a run whose loss only falls, with these values of another metric."""
    rounds = [
        a_round(n, split="validation", metrics={"loss": 1 / n, key: value}, **fields)
        for n, value in enumerate(values, 1)
    ]
    folder = write_run(root, "r1", [a_start(task=task), *rounds], task=task, **{f"tasks.{task}.validation-share": 0.1})
    return folder.path


@pytest.mark.parametrize(
    ("task", "key", "best"),
    [("sessions", "hr20", 3), ("rules", "hr20_shown", 3), ("traffic", "mse", 2), ("ratings", "rmse", 2)],
)
def test_the_marked_round_is_the_best_by_the_objective(task: str, key: str, best: int, tmp_path: Path) -> None:
    path = traced(tmp_path, task, key, [0.3, 0.2, 0.5, 0.4])
    assert read(path).best_round == best
    assert json.loads(ask(tmp_path, "/api/runs/r1").body)["objective"] == key


def test_the_trimmed_mean_decides_where_the_server_chose_by_it(tmp_path: Path) -> None:
    assert read(traced(tmp_path, "traffic", "mse", [0.3, 0.2], selection=0.25)).best_round == 1


def test_rounds_on_test_data_and_without_the_objective_are_never_the_best(tmp_path: Path) -> None:
    events = [a_round(1, metrics={"hr20": 0.1}), a_round(2, split="test", metrics={"hr20": 0.9}), a_round(3)]
    assert read(write_run(tmp_path, "r1", events, task="sessions").path).best_round == 1
    assert read(write_run(tmp_path, "r2", [a_round(1)], task="sessions").path).best_round == 0
    assert read(write_run(tmp_path, "r3", events, task="gone").path).best_round == 0


def test_a_report_marks_the_same_round_in_every_curve_and_names_the_metric(tmp_path: Path) -> None:
    path = traced(tmp_path, "traffic", "mse", [0.3, 0.2, 0.5])
    assert "a dot marks the best round by Mean squared error." in page([path])
    assert metric_curves([read(path)], measure("loss")).count("<use") > 0


def test_the_list_that_people_see_replaces_that_of_all_candidates(tmp_path: Path) -> None:
    """It leads the headlines of the terminal, the run list and the live page."""
    keys = {"loss", "auc", "hr20", "hr20_shown"}
    assert [m.key for m in headlines(keys, first="hr20_shown")] == ["hr20_shown", "loss", "auc"]
    event = a_round(1, metrics=dict.fromkeys(keys, 0.5))
    write_run(tmp_path, "r1", [a_start(), event])
    [run] = json.loads(ask(tmp_path, "/api/runs").body)
    assert (run["metric"], run["value"]) == ("hr@20 shown", "0.500")
    tail = Tail(tmp_path, "r1")
    message = _message(tail, Batch([event], False, False, 0), [tail], set()).decode()
    described = json.loads(message.partition("data: ")[2])["metrics"]
    assert {key for key, about in described.items() if about["headline"]} == {"loss", "auc", "hr20_shown"}


def best(*folders: Path) -> dict[str, list[int]]:
    """Return metric -> runs marked as the best."""
    rows: list[dict[str, Any]] = view.compare_runs([view.read(folder) for folder in folders])
    return {row["label"]: [k for k, cell in enumerate(row["cells"]) if cell["best"]] for row in rows}


@pytest.mark.parametrize(("clients", "limit", "marked"), [(6, 0.9, [0]), (6, 0.985, []), (4, 0.9, [])])
def test_a_best_value_is_marked_if_the_difference_of_enough_clients_is_clear(
    clients: int, limit: float, marked: list[int], tmp_path: Path
) -> None:
    first = make_run(tmp_path, "a", clients=clients)
    second = make_run(tmp_path, "b", clients=clients, limit=limit, seed=1)
    assert best(first, second)["AUC"] == marked


def test_runs_of_another_task_unfinished_ones_and_baselines_have_no_part_in_it(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, name, clients=6, limit=limit) for name, limit in (("a", 0.9), ("b", 0.985))]
    found = best(*runs, make_forecasts(tmp_path, "c"), make_run(tmp_path, "d", clients=6, status="running"))
    assert found["AUC"] == [1]
    assert not found[view.measure("profile_mse").label]
    for run in runs:
        result = run / "result.json"
        result.write_text(result.read_text("utf-8").replace('"auc"', '"hr20_history"'), "utf-8")
    assert not best(*runs)[view.measure("hr20_history").label]
