"""Inverse-gap weighting: a distribution over arms, more concentrated for larger γ."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.planning.bandit import exploitation, probabilities

values = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=8).map(np.array)


@given(values, st.floats(0, 1e6))
def test_it_is_a_distribution_with_lower_bounds_for_every_arm(value: np.ndarray, gamma: float) -> None:
    p = probabilities(value, gamma)
    k, best = len(value), int(np.argmax(value))
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert (p > 0).all()
    assert p[best] >= 1 / k - 1e-12
    assert (p >= 1 / (k + 2 * gamma) - 1e-12).all()
    assert p[best] >= p.max() - 1e-12


@given(values)
def test_gamma_0_is_the_uniform_distribution(value: np.ndarray) -> None:
    assert probabilities(value, 0.0) == pytest.approx(np.full(len(value), 1 / len(value)))


def test_a_large_gamma_selects_the_best_arm() -> None:
    assert probabilities(np.array([0.1, 0.5, 0.3]), 1e9) == pytest.approx([0, 1, 0], abs=1e-7)


def test_equations_12_and_13_by_hand() -> None:
    p = probabilities(np.array([0.2, 0.7, 0.6]), 8.5)
    assert p[[0, 2]] == pytest.approx([1 / (3 + 8.5 * 0.5), 1 / (3 + 8.5 * 0.1)])
    assert p[1] == pytest.approx(1 - p[0] - p[2])


def test_gamma_equals_the_values_of_the_specification() -> None:
    assert exploitation(5, 100, 6) == pytest.approx(8.5, abs=0.02)
    assert exploitation(5, 100, 943 + 2) == pytest.approx(0.68, abs=0.005)
    assert np.isfinite(exploitation(5, 1, 6))
