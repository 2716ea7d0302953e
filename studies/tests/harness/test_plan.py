"""The plan names the seeds that a claim's rows lack, once each, with their expected time."""

import sys
from dataclasses import replace

import pytest

from studies.__main__ import main
from studies.harness.contrast import Contrast
from studies.harness.paper_claim import PaperClaim, judge
from studies.harness.papers import CLAIMS
from studies.harness.plan import missing_runs, plan_lines
from studies.harness.results import Results
from studies.harness.row import RowKey
from studies.harness.study import all_results
from studies.ratings.experiments import EXPERIMENTS as RATINGS
from studies.rules.drift import SAME_TYPE
from studies.rules.experiments import EXPERIMENTS as RULES
from tests.support.study_rows import row

CLAIM = PaperClaim(
    "paper", "R9", "a beats b", contrasts=[Contrast("rules", "set/default", "a", key, "loss") for key in "bc"]
)


def stored(**seeds: int) -> dict[str, Results]:
    rows = {key: row(key, dict.fromkeys(range(number), 1.0)) for key, number in seeds.items()}
    for key, one in rows.items():
        one.about.seconds = {"mean": 100.0 if key == "a" else 60.0}
    return {"rules": Results(rows={RowKey("set", "default", key): one for key, one in rows.items()})}


def test_missing_seeds_and_their_time() -> None:
    missing = missing_runs(CLAIM.contrasts, stored(a=3, b=5))
    assert [(one.key.row, one.runs, one.seconds) for one in missing] == [("a", 2, 100.0), ("c", 5, 80.0)]
    assert list(plan_lines(missing, 1.0)) == [
        "rules: set/default/a, 2 runs, 200 s",
        "rules: set/default/c, 5 runs, 400 s",
        "2 of 2 rows, 0.2 hours of one core",
    ]
    assert list(plan_lines(missing, 0.1))[-1] == "1 of 2 rows, 0.1 hours of one core"


def test_nothing_is_planned_once_all_is_stored() -> None:
    assert list(plan_lines(missing_runs(CLAIM.contrasts, stored(a=5, b=5, c=6)), 1.0)) == []


def test_an_open_claim_states_what_more_seeds_would_cost() -> None:
    [few] = judge([CLAIM], stored(a=3, b=5))
    assert few.reason == "more seeds: about 10 minutes of one core for 5 of each row"  # 2 · 100 s + 5 · 80 s
    claim = replace(CLAIM, contrasts=CLAIM.contrasts[:1])
    results = stored(a=5, b=5)
    for seed, trial in results["rules"].rows[RowKey("set", "default", "a")].trials.items():
        trial.metrics["loss"] = (0.985, 1.005, 0.99, 1.0, 0.985)[seed]
    [near] = judge([claim], results)
    needed = near.findings[0].needed
    assert needed is not None
    assert near.reason == f"more seeds: about {round((needed - 5) * 160 / 60)} minutes to decide 1 further comparison"
    for seed, trial in results["rules"].rows[RowKey("set", "default", "a")].trials.items():
        trial.metrics["loss"] = (0.1, 1.9, 1.0, 1.0, 1.0)[seed]
    assert judge([claim], results)[0].reason == "more seeds: 100 would not decide 1 comparison"


def test_a_decided_claim_states_no_price() -> None:
    [level] = judge([replace(CLAIM, contrasts=CLAIM.contrasts[:1])], stored(a=5, b=5))
    assert (level.verdict, level.reason) == ("level", "")


def test_the_command_lists_rows_that_lack_seeds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["studies", "plan"])
    assert main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(missing_runs((one for claim in CLAIMS for one in claim.needed), all_results())) + 1


def test_rows_of_rules_and_ratings_that_a_claim_names_can_be_run() -> None:
    defined = {
        "rules": {one.key for one in (*RULES, *SAME_TYPE)} | {"mf", "gcmc"},
        "ratings": {one.key for one in RATINGS},
    }
    named = {(one.study, key.row) for claim in CLAIMS for one in claim.needed for key in one.keys}
    assert {row for study, row in named if study in defined and row not in defined[study]} == set()
