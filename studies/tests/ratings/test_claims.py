"""Claims of the ratings page follow from its numbers."""

from collections.abc import Mapping

import pytest

from studies.harness.claim import Comparison
from studies.harness.experiment import Experiment
from studies.harness.row import Row, Trial
from studies.ratings.claims import (
    below_own_mean,
    default_verdict,
    equal_to_uniform,
    gain_of,
    helper_verdict,
    planner_verdict,
    short,
    signed_number,
    text_of,
)
from studies.ratings.experiments import EXPERIMENTS
from tests.support.study_rows import row as loss_row

[PLANNED] = [one for one in EXPERIMENTS if (one.protocol, one.key) == ("planned", "bgtplanner-laplace")]


def row(title: str, *errors: float) -> Row:
    return loss_row(title, dict(enumerate(errors)), "rmse")


def judged(planner: Row, uniform: Row, one: Experiment = PLANNED) -> str:
    return planner_verdict(one, planner, uniform)


def with_curve(planner: Row, rounds: int, curve: Mapping[int, float], **metrics: float) -> Row:
    trial = planner.trials[0]
    found = {number: {"rmse": error} for number, error in curve.items()}
    planner.trials[0] = Trial({**trial.metrics, "rounds": rounds, **metrics}, found)
    return planner


def test_numbers_have_no_zero_before_the_point() -> None:
    assert text_of(Comparison((0.0, 0.0), (0.004, 0.002))) == "−.0030 ± .0014, 2/2"
    assert text_of(Comparison((0.2,), (0.1,))) == "+.1000, 0/1"
    assert (short("10.25 ± 0.5"), signed_number(-0.0041)) == ("10.25 ± .5", "−.0041")


def test_both_claims_of_the_default_are_checked() -> None:
    own = row("own", *[0.21] * 10)
    assert [claim.holds for claim in default_verdict(0.2045, row("default", *[0.2] * 9, 0.22), own)] == [True, True]
    assert [claim.holds for claim in default_verdict(0.2045, row("default", *[0.2] * 8, 0.25, 0.25), own)] == [
        False
    ] * 2
    assert default_verdict(0.2045, row("default"), own) == []


def test_gains_with_two_helpers_are_checked_against_own_mean_and_local_noise() -> None:
    own, local = row("own", *[0.21] * 10), row("privunit", *[0.205] * 5)
    rows = {"helpers-1": row("helpers", *[0.2] * 9, 0.211), "privunit-1": local}
    [claim] = helper_verdict({1.0: 0.0085}, rows, own)
    assert claim.holds
    assert "−.0089" in claim.text
    assert not helper_verdict({1.0: 0.0095}, rows, own)[0].holds
    assert not helper_verdict({1.0: 0.005}, {**rows, "helpers-1": row("helpers", *[0.2] * 8, 0.211, 0.211)}, own)[
        0
    ].holds
    assert not helper_verdict({1.0: 0.005}, {**rows, "privunit-1": row("privunit", 0.199)}, own)[0].holds
    assert helper_verdict({2.0: 0.005}, rows, own) == []


def test_rows_that_are_not_better_than_the_own_mean_are_named() -> None:
    own = row("own", 0.21, 0.21)
    sentence = below_own_mean({"a": row("a", 0.2, 0.21), "b": row("b", 0.21, 0.211)}, own)
    assert sentence == "Not better than the users' own means: b (+.0005)."
    assert below_own_mean({}, own).endswith(": none.")


def test_a_planner_is_judged_by_its_worst_split() -> None:
    worse = judged(row("bgt", 0.29, 0.302, 0.3), row("uniform", 0.3, 0.3, 0.3))
    assert "at worst +.0020 on 3 splits, **does not hold**" in worse
    assert "No gain can be claimed" in worse


def test_a_gain_needs_three_splits_and_two_standard_errors() -> None:
    uniform = row("uniform", 0.3, 0.3, 0.3)
    assert "It gains: −.0100" in judged(row("bgt", 0.29, 0.2901, 0.2899), uniform)
    assert "too few splits" in judged(row("bgt", 0.29), uniform)
    assert "No gain can be claimed" in judged(row("bgt", 0.29, 0.2999, 0.2999), uniform)
    assert judged(row("bgt"), uniform) == "not compared with uniform yet."


@pytest.mark.parametrize(("error", "gains"), [(0.29996, False), (0.29994, True)])
def test_a_gain_shows_in_four_digits(error: float, gains: bool) -> None:
    assert gain_of(Comparison((error,) * 3, (0.3,) * 3)).startswith("It gains") is gains


def test_a_planner_that_stops_earlier_is_also_compared_at_its_last_round() -> None:
    uniform = with_curve(row("uniform", 0.32), 4, {1: 0.4, 2: 0.29, 3: 0.31})
    planner = with_curve(row("bgt", 0.30), 3, {1: 0.4, 2: 0.295})
    assert judged(planner, uniform).endswith("after 2 rounds of each, on held-out ratings: +.0050, 0/1.")
    uniform = with_curve(uniform, 4, {1: 0.4, 2: 0.29, 3: 0.31}, epsilon_spent=10.0)
    planner = with_curve(planner, 3, {1: 0.4, 2: 0.295}, epsilon_spent=9.7)
    assert judged(planner, uniform).endswith(
        " +.0050, 0/1. By then it had spent more: 97% of the budget in its 3 rounds, uniform 75% in as many."
    )
    assert "stopped earlier" not in judged(with_curve(planner, 4, {1: 0.4, 2: 0.295}), uniform)


def test_equal_errors_of_adap_and_uniform_are_counted() -> None:
    uniform, same, other = row("uniform", 0.3, 0.31), row("adap", 0.3, 0.31, 0.4), row("adap", 0.3, 0.3100001)
    sentence = equal_to_uniform(
        {"Laplace": (same, uniform), "Gaussian": (other, uniform), "none": (row("adap", 0.2), uniform)}
    )
    assert "same errors as uniform on some splits, or all: Laplace (2 of 2); Gaussian (1 of 2). Its clip" in sentence
    assert equal_to_uniform({"none": (row("adap", 0.2), uniform)}) == equal_to_uniform({}) == ""
