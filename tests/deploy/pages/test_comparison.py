"""Comparison of runs: a value is marked if it is clearly the best of comparable runs."""

from pathlib import Path
from typing import Any

import pytest

from deploy.pages import view
from tests.support.run_folders import make_forecasts, make_run


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
