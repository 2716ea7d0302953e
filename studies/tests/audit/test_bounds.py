"""Bounds of the audit against values worked out by hand."""

import math

import pytest
from scipy.stats import norm

from studies.audit.bounds import epsilon_bound, mu_bound, one_run_bound, share_bounds


def test_bounds_of_a_share_are_those_of_clopper_and_pearson() -> None:
    """No hit in n trials: the upper bound solves (1 − p)ⁿ = error; n hits: the lower one is error^(1/n)."""
    assert share_bounds(0, 50, 0.05) == (0.0, pytest.approx(1 - 0.05 ** (1 / 50)))
    assert share_bounds(50, 50, 0.05) == (pytest.approx(0.05 ** (1 / 50)), 1.0)


def test_bounds_approach_the_truth_from_below_as_trials_grow() -> None:
    """Shares Φ(±μ/2) have that μ, shares .5 and .5·e^−ε that ε."""
    trials, mu, epsilon = 10**8, 0.8, 1.5
    assert mu_bound(int(trials * norm.cdf(mu / 2)), int(trials * norm.cdf(-mu / 2)), trials) == pytest.approx(mu, 2e-3)
    assert epsilon_bound(trials // 2, int(trials / 2 * math.exp(-epsilon)), trials) == pytest.approx(epsilon, 2e-3)
    assert mu_bound(60, 40, 100) < mu_bound(6_000, 4_000, 10_000) < norm.ppf(0.6) - norm.ppf(0.4)


@pytest.mark.parametrize("bound", [mu_bound, epsilon_bound])
def test_guesses_no_better_than_chance_bound_nothing(bound) -> None:
    assert bound(50, 50, 100) == bound(0, 100, 100) == bound(0, 0, 100) == 0


def test_a_run_in_which_every_guess_is_right() -> None:
    """At δ = 0 the chance of r right guesses is (e^ε/(1 + e^ε))^r, here .05."""
    share = 0.05 ** (1 / 100)
    assert one_run_bound(100, 100, 1_000, 0.0) == pytest.approx(math.log(share / (1 - share)))
    assert one_run_bound(100, 100, 1_000, 1e-5) < one_run_bound(100, 100, 1_000, 0.0)


def test_a_run_with_half_of_the_guesses_right_bounds_nothing() -> None:
    assert one_run_bound(50, 100, 1_000, 1e-5) == 0
    assert one_run_bound(0, 100, 1_000, 1e-5) == 0
