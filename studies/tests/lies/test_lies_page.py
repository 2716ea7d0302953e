"""The page on lies states what the stored figures show, also where that disappoints."""

import pytest

from studies.harness.results import Results
from studies.harness.row import Trial
from studies.lies.cases import HONEST, HONEST_SEEDS, Case, all_cases
from studies.lies.figures import Figures
from studies.lies.headline import HEADLINE
from studies.lies.page import findings

LOSS, RANK = Case("rules", "fedrule", "loss"), Case("sessions", "fedga", "silence")


@pytest.fixture
def figures() -> Figures:
    """Return results in which all runs finish, all liars are named and no model differs; the spread is 0.1."""
    results = Results()
    for case in all_cases():
        about = {"rounds": 3.0, "named": float(case.lie != HONEST), "mistaken": 0.0, "stained": 0.0}
        values = [0.5, 0.6, 0.55][:HONEST_SEEDS] if case.lie == HONEST else [0.5]
        results.row(case.key).trials = {seed: Trial({"quality": q, **about}) for seed, q in enumerate(values)}
    return Figures(results)


def failed(figures: Figures) -> list[str]:
    return [claim.text for claim in findings(figures) if not claim.holds]


def change(figures: Figures, case: Case, **metrics: float) -> None:
    figures.results.row(case.key).trials[0].metrics.update(metrics)


def test_a_perfect_defence_satisfies_every_claim(figures: Figures) -> None:
    assert failed(figures) == []
    assert figures.cell(LOSS) == "0.0"


@pytest.mark.parametrize(("case", "quality", "cell"), [(LOSS, 0.58, "0.8"), (LOSS, 0.3, "0.0"), (RANK, 0.9, "0.0")])
def test_a_model_within_the_spread_or_better_holds(figures: Figures, case: Case, quality: float, cell: str) -> None:
    change(figures, case, quality=quality)
    assert (failed(figures), figures.cell(case)) == ([], cell)


@pytest.mark.parametrize(("case", "quality"), [(LOSS, 0.65), (RANK, 0.35)])
def test_a_model_worse_than_the_spread_is_stated(figures: Figures, case: Case, quality: float) -> None:
    change(figures, case, quality=quality)
    [text] = failed(figures)
    assert text.endswith(f"; not {case.method} on {case.task}: {case.lie})")
    assert figures.cell(case) == "**1.5**"


def test_a_liar_that_is_not_named_and_an_honest_client_that_is_are_stated(figures: Figures) -> None:
    change(figures, LOSS, named=0.0, mistaken=2.0)
    assert len(failed(figures)) == 2
    assert figures.cell(LOSS) == "0.0, **not named**"
    verdict, figure = HEADLINE.section(figures.results, "lies")
    runs = len([*figures.all()])
    assert f"The others finish in {runs}." in verdict
    assert f"named in {runs - 1}, an honest client by mistake in 2." in verdict
    assert figure.endswith("(assets/lies.svg)")


def test_a_case_that_was_not_run_is_stated_and_its_cell_is_empty(figures: Figures) -> None:
    figures.results.row(LOSS.key).trials = {}
    [text] = failed(figures)
    assert text.startswith("Each lie was tried on each method (")
    assert figures.cell(LOSS) == ""


def test_a_run_that_fails_or_ends_early_is_stated(figures: Figures) -> None:
    change(figures, RANK, rounds=2.0)
    row = figures.results.row(LOSS.key)
    row.trials, row.about.failures = {}, {"0": "too few clients"}
    assert [figures.cell(case) for case in (RANK, LOSS)] == ["**ends**", "**ends**"]
    finished = failed(figures)[0]
    assert finished.endswith("; not fedrule on rules: loss; not fedga on sessions: silence)")
