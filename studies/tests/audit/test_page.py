"""The page of the audit states what the stored bounds show, also where that disappoints."""

import pytest

from studies.audit.cases import FAULTY_CASES, MEMBERS, ONE_RUNS, OPENED, SOUND_CASES, UPLOADS, Case
from studies.audit.figures import Figures
from studies.audit.headline import HEADLINE
from studies.audit.page import findings
from studies.harness.results import Results
from studies.harness.row import Trial
from studies.harness.study import Study


@pytest.fixture
def figures() -> Figures:
    """Return results in which bounds are 90 % of the claims, and twice the claims where there is a fault."""
    results = Results()
    counts = {"hits": 60.0, "alarms": 20.0, "trials": 100.0}
    for case in (*SOUND_CASES, *FAULTY_CASES):
        share = 2.0 if case.fault else 0.9
        losses = {"claimed": 1.0, "audited": share, "claimed_epsilon": 2.0, "audited_epsilon": 2 * share}
        results.row(case.key).trials = {0: Trial({**counts, **losses})}
    for run in ONE_RUNS:
        audited = run.epsilon * (2 if run.fault else 0.2)
        metrics = {"claimed_epsilon": run.epsilon, "audited_epsilon": audited, "right": 150.0, "guesses": 200.0}
        results.row(run.key).trials = {seed: Trial(dict(metrics)) for seed in range(3)}
    for upload in UPLOADS:
        results.row(upload.key).trials = {
            seed: Trial({"precision": 0.1 * seed, "popularity": 0.1}) for seed in range(3)
        }
    for upload in MEMBERS:
        results.row(upload.key).trials = {seed: Trial({"auc": 0.45 + 0.05 * seed, "tpr": 0.01}) for seed in range(3)}
    return Figures(results)


def failed(figures: Figures) -> list[str]:
    return [claim.text for claim in findings(figures) if not claim.holds]


def change(figures: Figures, case: Case, **metrics: float) -> None:
    figures.results.row(case.key).trials[0].metrics.update(metrics)


def test_bounds_below_their_claims_satisfy_every_statement(figures: Figures) -> None:
    assert failed(figures) == []
    verdict, figure = HEADLINE.section(figures.results, "audit")
    assert f"below the claimed one in {len(SOUND_CASES)} of {len(SOUND_CASES)} audits of clients" in verdict
    assert f"{len(FAULTY_CASES)} of {len(FAULTY_CASES)} deliberate faults" in verdict
    assert figure.endswith("(assets/audit.svg)")


def test_a_bound_above_its_claim_is_stated(figures: Figures) -> None:
    change(figures, SOUND_CASES[0], audited=1.2)
    assert failed(figures) == ["The audited loss is at most the claimed one for every way and ε (at most 1.20 of it)"]
    assert f"in {len(SOUND_CASES) - 1} of {len(SOUND_CASES)} audits" in next(HEADLINE.section(figures.results, "audit"))


def test_an_audit_that_finds_little_is_stated(figures: Figures) -> None:
    change(figures, Case("laplace", 2.0), audited=0.4)
    [text] = failed(figures)
    assert "Laplace 2 0.40" in text


def test_a_fault_that_is_not_detected_is_stated(figures: Figures) -> None:
    change(figures, FAULTY_CASES[0], audited=0.9)
    assert failed(figures) == [f"Every deliberate fault is detected ({len(FAULTY_CASES) - 1} of {len(FAULTY_CASES)})"]


def test_a_training_that_refutes_its_claim_is_stated(figures: Figures) -> None:
    figures.results.row(ONE_RUNS[0].key).trials[2].metrics["audited_epsilon"] = 3.5
    [text] = failed(figures)
    assert text.startswith(f"DP-SGD at ε = {ONE_RUNS[0].epsilon:g}: no training gives a larger bound (at most 3.50)")


def test_items_that_an_update_reveals_are_stated(figures: Figures) -> None:
    for trial in figures.results.row(UPLOADS[0].key).trials.values():
        trial.metrics["precision"] = 0.9
    [text] = failed(figures)
    assert text.startswith("Updates (items, one client, one step): ")
    assert text.endswith("(90.0 against 10.0 %)")


def test_sessions_whose_membership_an_update_reveals_are_stated(figures: Figures) -> None:
    figures.results.row(MEMBERS[0].key).trials[0].metrics["auc"] = 0.95
    [text] = failed(figures)
    assert text.startswith("Updates (one client, one step): membership of a session")
    assert text.endswith("(0.67)")


def test_the_stored_rows_are_those_of_the_cases() -> None:
    stored = {key for key, row in Study("audit").results().rows.items() if row.trials}
    assert stored == {case.key for case in (*SOUND_CASES, *FAULTY_CASES, *ONE_RUNS, *UPLOADS, *MEMBERS, *OPENED)}
