"""Plans and page of the faults benchmark."""

import json
from collections import Counter
from pathlib import Path

from benchmarks.faults.__main__ import PAGE, RESULTS, SERVER_KINDS, TASKS, make_plans
from benchmarks.faults.kinds import KINDS
from benchmarks.faults.page import write_page

ROOT = Path(__file__).parents[3]


def test_plans_have_all_kills_and_pauses_of_known_kinds_and_equal_seeds_give_equal_ones() -> None:
    plans = make_plans(list(TASKS), 20, 5, 0)
    counts = Counter(fault for plan in plans for fault in plan.faults)
    assert counts.keys() == KINDS.keys()
    assert (counts["pause"], counts.total()) == (5, 25)
    assert min(counts[kind] for kind in SERVER_KINDS) >= 2
    assert [bool(plan.faults.count("client")) for plan in plans] == [False, True, False, True, False]
    assert [plan.task for plan in plans if not plan.is_comparable and plan.epsilon] == ["ratings"]
    assert plans == make_plans(list(TASKS), 20, 5, 0)
    assert plans != make_plans(list(TASKS), 20, 5, 1)


def test_the_page_follows_from_the_stored_results() -> None:
    stored = json.loads((ROOT / RESULTS).read_text())
    assert write_page(stored) == (ROOT / PAGE).read_text("utf-8")


def test_the_page_counts_what_was_lost() -> None:
    stall = {"fault": "SuperLink", "seconds": 5.0}
    broken = {
        "task": "rules",
        "stalls": [stall],
        "status": "lost",
        "lines_lost": 2,
        "lines_twice": 1,
        "processes_left": 3,
        "rounds": 8,
        "releases": 20,
        "unrecorded": 1,
    }
    stored = {"cores": 2, "load": 1.0, "runs": [{**broken, "same_model": False, "comparable": True}]}
    page = write_page(stored)
    assert "| runs finished | 0 of 1 |" in page
    assert "| round lines lost | 2 of 8 |" in page
    assert "| noised replies missing in a client's ledger | 1 of 20 |" in page
    assert "| SuperLink | 1 | 5.0 | 5.0 |" in page
    assert "is not met." in page
