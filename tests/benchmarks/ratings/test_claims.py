import pytest
from benchmarks.ratings.study import Row

from benchmarks.ratings.claims import Duel, below_own_mean, default_verdict, duel, planner_verdict, unmoved


def _row(title: str, *errors: float) -> Row:
    return Row(title, title, seeds={seed: {"rmse": error} for seed, error in enumerate(errors)})


def test_a_duel_is_fought_on_the_splits_both_have() -> None:
    fought = duel(_row("a", 0.2, 0.3, 0.1), _row("b", 0.25, 0.2))
    assert fought is not None
    assert fought.differences == pytest.approx((-0.05, 0.1))
    assert fought.won == 1
    assert duel(_row("a", 0.2), _row("b")) is None


def test_a_duel_in_words() -> None:
    assert Duel((-0.004, -0.002)).text == "−.0030 ± .0014, 2/2"
    assert Duel((0.1,)).text == "+.1000, 0/1"


def test_the_default_holds_only_where_both_its_claims_do() -> None:
    own = _row("own", *[0.21] * 10)
    good = default_verdict(0.2045, _row("default", *[0.2] * 9, 0.22), own)
    assert [sentence.rpartition(", ")[2] for sentence in good] == ["holds.", "holds."]
    bad = default_verdict(0.2045, _row("default", *[0.2] * 8, 0.25, 0.25), own)
    assert [sentence.rpartition(", ")[2] for sentence in bad] == ["**does not hold**.", "**does not hold**."]


def test_who_does_not_beat_the_own_mean_is_named() -> None:
    own = _row("own", 0.21, 0.21)
    said = below_own_mean({"a": _row("a", 0.2, 0.21), "b": _row("b", 0.21, 0.211)}, own)
    assert said == "Not better than the users' own means: b (+.0005)."
    assert below_own_mean({}, own).endswith(": none.")


def test_a_planner_is_judged_by_its_worst_split() -> None:
    uniform = _row("uniform", 0.3, 0.3, 0.3)
    worse = planner_verdict(_row("bgt", 0.29, 0.302, 0.3), uniform)
    assert "at worst +.0020 on 3 splits, **does not hold**" in worse
    assert "No gain can be claimed" in worse


def test_a_gain_needs_three_splits_and_two_standard_errors() -> None:
    uniform = _row("uniform", 0.3, 0.3, 0.3)
    assert "It gains: −.0100" in planner_verdict(_row("bgt", 0.29, 0.2901, 0.2899), uniform)
    assert "too few splits" in planner_verdict(_row("bgt", 0.29), uniform)
    assert "No gain can be claimed" in planner_verdict(_row("bgt", 0.29, 0.2999, 0.2999), uniform)
    assert planner_verdict(_row("bgt"), uniform) == "not compared with uniform yet."


def test_a_gain_shows_in_four_digits() -> None:
    uniform = _row("uniform", 0.3, 0.3, 0.3)
    below = planner_verdict(_row("bgt", 0.29996, 0.29996, 0.29996), uniform)
    assert below.endswith("No gain can be claimed: −.0000 ± .0000, 3/3.")
    assert planner_verdict(_row("bgt", 0.29994, 0.29994, 0.29994), uniform).endswith("It gains: −.0001 ± .0000, 3/3.")


def test_a_planner_that_stops_earlier_is_also_compared_at_its_last_round() -> None:
    uniform, planner = _row("uniform", 0.32), _row("bgt", 0.30)
    uniform.curves = {0: {"1": {"rmse": 0.4}, "2": {"rmse": 0.29}, "3": {"rmse": 0.31}}}
    planner.curves = {0: {"1": {"rmse": 0.4}, "2": {"rmse": 0.295}}}
    uniform.rounds, planner.rounds = {0: 4}, {0: 3}
    assert planner_verdict(planner, uniform).endswith("after 2 rounds of each, on the held-out ratings: +.0050, 0/1.")
    uniform.shares, planner.shares = {0: 1.0}, {0: 0.97}
    assert planner_verdict(planner, uniform).endswith(
        " +.0050, 0/1. It had then spent more: 97% of the budget in its 3 rounds, uniform 75% in as many."
    )
    planner.rounds = {0: 4}
    assert "stopped earlier" not in planner_verdict(planner, uniform)


def test_where_a_clip_never_moved_is_told_from_the_figures() -> None:
    uniform, same, other = _row("uniform", 0.3, 0.31), _row("adap", 0.3, 0.31, 0.4), _row("adap", 0.3, 0.3100001)
    told = unmoved({"Laplace": (same, uniform), "Gaussian": (other, uniform), "none": (_row("adap", 0.2), uniform)})
    assert (
        "to the last digit on some splits, or all: Laplace (2 of 2); Gaussian (1 of 2). Its clip, one for all" in told
    )
    assert unmoved({"none": (_row("adap", 0.2), uniform)}) == unmoved({}) == ""
