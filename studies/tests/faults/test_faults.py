"""Plans and page of the faults benchmark."""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

import pytest

from client.owner.journal import RequestEntry, RequestJournal
from studies.faults import __main__ as study
from studies.faults.__main__ import PAGE, RESULTS, SIEGES, TASKS, make_further_plans, make_plans
from studies.faults.apart import Served
from studies.faults.asleep import HOUR, prepare_clock, set_ahead
from studies.faults.attacks import STRANGERS
from studies.faults.bench import FEDERATIONS, Outcome
from studies.faults.kinds import KINDS, SERVE_RESTART_SECONDS
from studies.faults.page import KINDS as DESCRIBED
from studies.faults.page import write_page
from studies.faults.siege import Row, Window

ROOT = Path(__file__).parents[3]

GROWTH = 1.02
"""Limit on memory after 500 rounds, as a share of that after 50."""


def test_plans_have_all_kills_and_pauses_of_every_kind_and_equal_seeds_give_equal_ones() -> None:
    plans = make_plans(TASKS, 100, 20, 0)
    counts = Counter(plan.fault for plan in plans)
    assert counts.keys() == KINDS.keys() - FEDERATIONS.keys()
    assert (counts.pop("pause"), counts.total()) == (20, 100)
    assert set(counts.values()) == {20}
    assert set(Counter((plan.task, plan.fault) for plan in plans).values()) == {4}
    assert {plan.task for plan in plans if plan.epsilon} == {"ratings"}
    assert not any(plan.is_comparable for plan in plans if plan.fault == "client" or plan.epsilon)
    assert plans == make_plans(TASKS, 100, 20, 0)
    assert plans != make_plans(TASKS, 100, 20, 1)


def test_further_plans_strike_federations_apart_twice_a_task_and_add_noise_to_a_second_task() -> None:
    plans = make_further_plans(TASKS, 20, 10)
    apart, noised = plans[:20], plans[20:]
    assert Counter((plan.task, plan.fault) for plan in apart) == dict.fromkeys(product(TASKS, FEDERATIONS), 2)
    assert {plan.task for plan in apart if plan.epsilon} == {"ratings"}
    assert {plan.fault for plan in noised} == KINDS.keys() - {"pause"}
    assert all(plan.epsilon and plan.task not in ("ratings",) for plan in noised)


def test_serve_is_restarted_as_its_unit_does(tmp_path: Path) -> None:
    unit = (ROOT / "deploy" / "systemd" / "fedloom-server.service").read_text()
    assert f"RestartSec={SERVE_RESTART_SECONDS:.0f}\n" in unit
    served = Served(tmp_path, ("--task", "rules"))
    assert served.words(resume=True) == served.words(resume=False)
    home, run = str(tmp_path / "private" / "server"), "faults"
    words = unit.replace("${RUN}", run).replace("/var/lib/fedloom/server", home)
    assert "fedloom " + " ".join(served.words(resume=True)[:6]) + " $OPTIONS" in words


def test_noised_replies_that_a_ledger_lacks_are_counted(tmp_path: Path) -> None:
    served = Served(tmp_path, ())
    state = served.private / "client-0" / "state"
    (state / "lineages").mkdir(parents=True)
    with closing(sqlite3.connect(state / "lineages" / "0.fedloom-ledger")) as ledger:
        ledger.execute("CREATE TABLE releases (run, round)")
        ledger.executemany("INSERT INTO releases VALUES (?, ?)", [("faults 0/3", 1), ("other", 2)])
        ledger.commit()
    journal = RequestJournal(state)
    for number in (1, 2):  # the server used the first only
        journal.write(RequestEntry(f"{number}", "", "client-0", "faults", number, asked="train", noised=True))
    journal.write(RequestEntry("3", "", "client-0", "faults", 3, asked="evaluate"))
    metrics = tmp_path / "runs" / "faults" / "metrics.jsonl"
    metrics.parent.mkdir(parents=True)
    lines = [
        {"event": "round", "round": 1, "clients": {"client-0": {}}, "missing": []},
        {"event": "round", "round": 4, "clients": {"client-0": {}}, "missing": ["client-0"]},
    ]
    metrics.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert served.releases() == (2, 1)


def test_a_study_that_was_stopped_measures_the_remaining_plans_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "RESULTS", tmp_path / "faults.json")
    monkeypatch.setattr(study, "unbroken_model", lambda *_: "")
    monkeypatch.setattr(study, "measure", lambda plan, *_: outcome_of(plan.task, plan.fault))
    options = argparse.Namespace(tasks=TASKS, kills=10, pauses=2, apart=2, noised=1, seed=0, resume=False, again=())
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
    monkeypatch.setattr(study, "measure", lambda plan, *_: replace(outcome_of(plan.task, plan.fault), stall=7.5))
    study.run(argparse.Namespace(**{**vars(options), "again": ("serve", "client")}))
    again = json.loads(study.RESULTS.read_text())["runs"]
    assert {run["fault"] for run in again if run["stall"] == 7.5} == {"serve", "client"}
    assert [{**run, "stall": 0.0} for run in again] == [{**run, "stall": 0.0} for run in whole["runs"]]
    assert [run for run in again if run["stall"] != 7.5] == [
        r for r in whole["runs"] if r["fault"] not in ("serve", "client")
    ]


def test_the_page_follows_from_the_stored_results() -> None:
    stored = json.loads((ROOT / RESULTS).read_text())
    assert write_page(stored, json.loads((ROOT / SIEGES).read_text())) == (ROOT / PAGE).read_text("utf-8")
    assert DESCRIBED.keys() == KINDS.keys()


def test_stored_attacks_of_strangers_reach_their_goal_and_memory_is_flat() -> None:
    assert f"{len(STRANGERS)} of these {len(STRANGERS)} attacks reach it." in (ROOT / PAGE).read_text("utf-8")
    first, *_, last = json.loads((ROOT / SIEGES).read_text())["ages"]
    assert (first["round"], last["round"]) == (50, 500)
    assert all(last[name] < GROWTH * first[name] for name in ("door", "ServerApp", "client"))


def test_the_page_counts_what_was_lost() -> None:
    broken = replace(
        outcome_of("rules", "SuperLink"),
        stall=9.0,
        status="lost",
        lines_lost=2,
        lines_twice=1,
        processes_left=3,
        rounds_lost=4,
        restarts=1,
    )
    lost = replace(broken, rounds=8, releases=20, unrecorded=1, same_model=False, comparable=True)
    stored = {"cores": 2, "load": 1.0, "real_time": False, "again": ["serve"], "runs": [asdict(lost)]}
    page = write_page(stored, {"rows": {"gzip bombs": asdict(bombed())}, "ages": [{"round": 50, "door": 150.4}]})
    assert "| runs finished | 0 of 1 |" in page
    assert "| rounds lost | 4 of 8 |" in page
    assert "| round lines lost | 2 of 8 |" in page
    assert "| commands typed by a person after the start | 0 |" in page
    assert "| commands of a service manager | 1 |" in page
    assert "| processes left | 3 |" in page
    assert "| noised replies missing in a client's ledger | 1 of 20 |" in page
    assert "| SuperLink | 1 | 9.0 | 9.0 |" in page
    assert "is not met. Alone, `SuperLink` misses it." in page
    assert "Runs that `run --again serve` measured are newer" in page
    assert "| gzip bombs | 4.0 | 3.0 | 5.0 | 0.67 | 150/420/160 | 0/0/0 | 0/0/0 | no | 3 |" in page
    assert "Missed by `gzip bombs`." in page
    assert "| 50 | 150 |" in page


def bombed() -> Row:
    """Return the row of an attack that the door withstood badly."""
    rates = {4.0: 150.0, 3.0: 420.0, 5.0: 160.0}
    before, during, after = (Window(r, {"door": mb, "ServerApp": 0.0, "client": 0.0}) for r, mb in rates.items())
    return Row("gzip bombs", [before, after], [during], load=3.0)


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


def test_a_clock_jumps_for_one_process_and_its_waits_do_not(tmp_path: Path) -> None:
    environment = {**os.environ, **prepare_clock(tmp_path)}
    script = "import time\nwhile True: input(); print(time.time(), time.monotonic(), flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        for ahead in (0.0, HOUR):
            set_ahead(tmp_path, ahead)
            process.stdin.write("\n")
            process.stdin.flush()
            day, waits = map(float, process.stdout.readline().split())
            assert abs(day - time.time() - ahead) < 1
            assert abs(waits - time.monotonic()) < 1
        process.kill()
