"""Comparison of runs: the best value is marked if runs are comparable."""

from pathlib import Path
from typing import Any

from deploy.pages.view import RunRecord, compare_runs
from server.record.events import RoundEvent
from server.record.folder import RunDirectory


def run(task: str, **metrics: float) -> RunRecord:
    event = RoundEvent(
        round=1, rounds=9, loss=0.5, metrics=metrics, seconds=1, answered=1, asked=1, bytes_down=0, bytes_up=0
    )
    return RunRecord(RunDirectory(Path(), "r"), {"task": task}, (event,), "unfinished", "", None, None)


def best(rows: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Return metric -> runs marked as the best."""
    return {row["label"]: [k for k, cell in enumerate(row["cells"]) if cell["best"]] for row in rows}


def test_the_best_of_a_task_s_runs_is_marked() -> None:
    marked = best(compare_runs([run("rules", auc=0.9, mr0=3.0), run("rules", auc=0.8, mr0=2.0)]))
    assert (marked["AUC"], marked["Mean rank"]) == ([0], [1])


def test_runs_of_different_tasks_are_not_compared() -> None:
    marked = best(compare_runs([run("rules", hr20=0.9), run("sessions", hr20=0.5), run("sessions", hr20=0.4)]))
    assert marked["Hit rate @20"] == [1]
    assert best(compare_runs([run("rules", hr20=0.9), run("sessions", hr20=0.5)]))["Hit rate @20"] == []


def test_single_and_equal_values_are_not_marked() -> None:
    marked = best(compare_runs([run("rules", auc=0.9, mr0=1.0), run("rules", mr0=1.0), run("rules", auc=float("nan"))]))
    assert (marked["AUC"], marked["Mean rank"]) == ([], [])


def test_baselines_are_not_marked() -> None:
    baselines = ("profile_mse", "rmse_half", "rmse_prior_mean", "walk_mrr20", "truth_rho_trace")
    marked = best(compare_runs([run("x", **dict.fromkeys(baselines, 0.1)), run("x", **dict.fromkeys(baselines, 0.2))]))
    assert not any(marked.values())
