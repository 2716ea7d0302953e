"""The page of the robustness study states what the stored figures show, also where that disappoints."""

import pytest

from studies.harness.results import Results
from studies.harness.row import Trial
from studies.robustness.cases import ATTACKS, FLIPPED, HONEST, METRICS, SCALED, Case, all_cases
from studies.robustness.figures import Figures
from studies.robustness.headline import HEADLINE
from studies.robustness.page import findings


@pytest.fixture
def figures() -> Figures:
    """Return results in which every defence is perfect: HR@20 of 50 %, and all attackers are named."""
    results = Results()
    for case in all_cases():
        counts = {"attackers": case.attackers, "named": case.attackers, "mistaken": 0, "taken_back": 1}
        metrics = {"hr20": 0.5, "shown_hr20": 0.5, "seconds": 0.01, **counts}
        results.row(case.key).trials = {seed: Trial(dict(metrics)) for seed in range(2)}
    return Figures(results)


def failed(figures: Figures) -> list[str]:
    return [claim.text for claim in findings(figures) if not claim.holds]


def change(figures: Figures, case: Case, **metrics: float) -> None:
    for trial in figures.results.row(case.key).trials.values():
        trial.metrics.update(metrics)


def test_a_perfect_defence_satisfies_every_claim(figures: Figures) -> None:
    assert failed(figures) == []


def test_a_rule_that_costs_quality_without_attackers_is_stated(figures: Figures) -> None:
    change(figures, Case("sessions", HONEST, "median"), hr20=0.3)
    assert failed(figures) == [
        "Without attackers, `median` costs at most 5 points of HR@20 (rules 50.0 to 50.0; sessions 50.0 to 30.0)"
    ]


def test_the_worst_attack_is_stated_and_false_metrics_are_none_on_the_model(figures: Figures) -> None:
    change(figures, Case("rules", FLIPPED, "none", 0.1), hr20=0.1)
    change(figures, Case("rules", METRICS, "none", 0.1), hr20=0.0)
    [text] = failed(figures)
    assert text.startswith("With 10 % attackers, `none` stays within 5 points")
    assert f"(rules 10.0 by {ATTACKS[FLIPPED]}; sessions 50.0 by " in text


def test_names_are_counted_over_rules_tasks_and_shares(figures: Figures) -> None:
    change(figures, Case("rules", SCALED, "median", 0.3), named=4, mistaken=1)
    assert figures.named(SCALED, 0.3) == (2 * 2 * 5 * 6 - 4, 2 * 2 * 5 * 6)
    assert figures.mistaken(SCALED) == 2
    assert len(failed(figures)) == 2
    verdict, figure = HEADLINE.section(figures.results, "robustness")
    assert "names 80 of 80 attackers" in verdict
    assert f"by mistake in {figures.runs} runs: 2." in verdict
    assert figure.endswith("(assets/robustness.svg)")


def test_false_metrics_that_a_run_shows_are_stated(figures: Figures) -> None:
    change(figures, Case("rules", METRICS, "none", 0.1), shown_hr20=0.9)
    assert failed(figures) == [
        "A run shows true metrics where two of 20 clients send false ones (HR@20 rules 90; sessions 50)"
    ]
