"""Corrected intervals, Holm's correction and verdicts, against hand-worked numbers and by simulation."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from studies.harness.statistics import Paired, Verdict, combined, holm, seeds_needed, verdict_of

FIVE = (1.0, 2.0, 3.0, 4.0, 5.0)
"""Mean 3, variance 2.5; t with 4 degrees of freedom is 2.776 at 95 %."""


def test_an_interval_by_hand() -> None:
    low, high = Paired(FIVE).interval(0.95)
    assert (low, high) == pytest.approx((3 - 2.776445 * 0.5**0.5, 3 + 2.776445 * 0.5**0.5), abs=1e-5)


def test_an_interval_for_splits_drawn_again_is_half_as_wide_again() -> None:
    plain, corrected = Paired(FIVE), Paired(FIVE, overlap=0.25)
    assert corrected.error == pytest.approx((2.5 * (1 / 5 + 1 / 4)) ** 0.5)
    assert corrected.error / plain.error == pytest.approx(1.5)


def test_p_is_that_of_a_paired_t() -> None:
    assert Paired(FIVE).p_value() == pytest.approx(ttest_1samp(FIVE, 0).pvalue)
    assert Paired(FIVE).p_value(at=1.0) == pytest.approx(ttest_1samp(FIVE, 1).pvalue)


def test_one_seed_has_no_interval_and_equal_seeds_no_error() -> None:
    assert Paired((1.0,)).interval(0.9) == (-np.inf, np.inf)
    assert Paired((1.0,)).p_value() == 1.0
    assert Paired((1.0, 1.0)).p_value() == 0.0
    assert Paired((0.0, 0.0)).p_value() == 1.0


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


@pytest.mark.parametrize(
    ("differences", "smallest", "verdict"),
    [
        ((2.0, 2.1, 1.9, 2.0, 2.0), 1.0, "holds"),
        ((0.1, -0.1, 0.0, 0.1, -0.1), 1.0, "level"),
        ((-2.0, -2.1, -1.9, -2.0, -2.0), 1.0, "fails"),
        ((-5.0, 5.0, 4.0, -4.0, 1.0), 1.0, "open"),
        ((2.0, 2.1, 1.9, 2.0), 1.0, "open"),
        ((1.0, 1.1, 0.9, 1.0, 1.0), 1.5, "level"),
    ],
)
def test_a_verdict_by_the_interval(differences: tuple[float, ...], smallest: float, verdict: Verdict) -> None:
    found = Paired(differences)
    assert verdict_of(found, found.p_value(), smallest) == verdict


def test_more_seeds_decide_a_comparison_unless_its_splits_overlap_too_much() -> None:
    wide = Paired((4.0, 3.5, -0.5, 1.0, 2.0))
    overlapping = Paired(wide.differences, overlap=0.25)
    assert verdict_of(wide, 2 * wide.p_value(), 1.0) == "open"
    assert seeds_needed(wide, 2 * wide.p_value(), 1.0) == 8
    assert seeds_needed(wide, 20 * wide.p_value(), 1.0) == 13
    assert seeds_needed(overlapping, 2 * overlapping.p_value(), 1.0) is None


def test_no_effect_is_confirmed_without_significance_after_correction() -> None:
    found = Paired((2.0, 2.1, 1.9, 2.0, 2.0))
    assert verdict_of(found, 0.06, 1.0) == "open"


@pytest.mark.parametrize(("shift", "verdict"), [(0.0, "holds"), (-2.0, "fails"), (-1.0, "open")])
def test_no_worse_is_judged_from_minus_the_smallest_effect(shift: float, verdict: Verdict) -> None:
    found = Paired([shift + value for value in (0.1, -0.1, 0.0, 0.1, -0.1)])
    assert verdict_of(found, found.p_value(-1.0), 1.0, no_worse=True) == verdict


def test_a_claim_has_the_worst_verdict_of_its_parts() -> None:
    assert combined(["holds", "level", "open"]) == "open"
    assert combined(["holds", "fails", "open"]) == "fails"
    assert combined(["holds", "level"]) == "level"
    assert combined([]) == "open"


def test_the_corrected_interval_covers_on_overlapping_splits() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(2_000):
        pool = rng.normal(size=50)
        differences = [float(pool[rng.permutation(50)[:10]].mean()) for _ in range(5)]  # 40 remain for training
        low, high = Paired(differences, overlap=0.25).interval(0.95)
        covered += low <= 0 <= high
    assert 0.90 <= covered / 2_000 <= 0.99


def test_a_family_of_null_comparisons_is_seldom_confirmed() -> None:
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(1_000):
        family = [Paired(row.tolist()) for row in rng.normal(size=(20, 5))]
        corrected = holm(one.p_value() for one in family)
        false += "holds" in {verdict_of(one, p, 0.0) for one, p in zip(family, corrected, strict=True)}
    assert false / 1_000 <= 0.05
