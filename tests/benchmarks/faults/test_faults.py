"""Plans and page of the faults benchmark."""

import argparse
import json
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.faults import __main__ as study
from benchmarks.faults.__main__ import PAGE, RESULTS, TASKS, make_plans
from benchmarks.faults.bench import Outcome
from benchmarks.faults.kinds import KINDS
from benchmarks.faults.page import write_page

ROOT = Path(__file__).parents[3]


def test_plans_have_all_kills_and_pauses_of_every_kind_and_equal_seeds_give_equal_ones() -> None:
    plans = make_plans(TASKS, 100, 20, 0)
    counts = Counter(plan.fault for plan in plans)
    assert counts.keys() == KINDS.keys()
    assert (counts.pop("pause"), counts.total()) == (20, 100)
    assert set(counts.values()) == {20}
    assert set(Counter((plan.task, plan.fault) for plan in plans).values()) == {4}
    assert {plan.task for plan in plans if plan.epsilon} == {"ratings"}
    assert not any(plan.is_comparable for plan in plans if plan.fault == "client" or plan.epsilon)
    assert plans == make_plans(TASKS, 100, 20, 0)
    assert plans != make_plans(TASKS, 100, 20, 1)


def test_a_study_that_was_stopped_measures_the_remaining_plans_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "RESULTS", tmp_path / "faults.json")
    monkeypatch.setattr(study, "unbroken_model", lambda *_: "")
    monkeypatch.setattr(study, "measure", lambda plan, *_: outcome_of(plan.task, plan.fault))
    options = argparse.Namespace(tasks=TASKS, kills=10, pauses=2, seed=0, resume=False)
    study.run(options)
    whole = json.loads(study.RESULTS.read_text())
    study.RESULTS.write_text(json.dumps({**whole, "runs": whole["runs"][:7]}))
    measured: list[str] = []
    monkeypatch.setattr(
        study, "measure", lambda plan, *_: measured.append(plan.task) or outcome_of(plan.task, plan.fault)
    )
    study.run(argparse.Namespace(**{**vars(options), "resume": True}))
    assert measured == [run["task"] for run in whole["runs"][7:]]
    assert json.loads(study.RESULTS.read_text())["runs"] == whole["runs"]


def test_the_page_follows_from_the_stored_results() -> None:
    stored = json.loads((ROOT / RESULTS).read_text())
    assert write_page(stored) == (ROOT / PAGE).read_text("utf-8")


def test_the_page_counts_what_was_lost() -> None:
    broken = replace(
        outcome_of("rules", "SuperLink"), stall=9.0, status="lost", lines_lost=2, lines_twice=1, processes_left=3
    )
    lost = replace(broken, rounds=8, releases=20, unrecorded=1, same_model=False, comparable=True)
    page = write_page({"cores": 2, "load": 1.0, "real_time": False, "runs": [asdict(lost)]})
    assert "| runs finished | 0 of 1 |" in page
    assert "| round lines lost | 2 of 8 |" in page
    assert "| noised replies missing in a client's ledger | 1 of 20 |" in page
    assert "| SuperLink | 1 | 9.0 | 9.0 |" in page
    assert "is not met." in page


def outcome_of(task: str, fault: str) -> Outcome:
    """Return the outcome of a run that lost nothing."""
    return Outcome(
        task=task,
        fault=fault,
        stall=1.0,
        status="completed",
        rounds=10,
        lines_lost=0,
        lines_twice=0,
        processes_left=0,
        same_model=True,
        comparable=True,
    )
