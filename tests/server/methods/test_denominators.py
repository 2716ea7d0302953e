"""Numbers of FedGA's denominators, by hand."""

import numpy as np
import pytest

from common.arrays import Arrays
from server.methods.fedga import describe_denominators

TAU = 0.1
UPDATE: Arrays = {"b": np.array([-1.0, 0.0]), "a": np.array([0.5, 0.25, 0.0])}
MAGNITUDE: Arrays = {"b": np.array([1.0, 0.0]), "a": np.array([1.0, 1.0, 0.5])}
BEFORE: Arrays = {"b": np.array([1.0, 1e-4]), "a": np.array([1.5, 2.5, 0.25])}


def test_shares_and_agreement_by_hand() -> None:
    """|Δ̄|/Δ' is 1 (one sign), .5, .25, 0; V is 1, 1.5, 2.5, 1, and beyond 2 where nothing moved."""
    found = describe_denominators(
        BEFORE, {"a": np.array([1.0, 1.0, 1.0]), "b": np.array([1.0, 1e-4])}, UPDATE, MAGNITUDE, TAU
    )
    assert found["agreement_p50"] == pytest.approx(0.375)
    assert [found[f"case_{k}"] for k in (1, 2, 3)] == pytest.approx([0.4, 0.2, 0.4])
    assert (found["moved"], found["below_tau"]) == pytest.approx((0.8, 0.2))


def test_the_first_round_starts_at_tau_squared() -> None:
    found = describe_denominators({}, {"a": np.array([0.01])}, {"a": np.array([0.05])}, {"a": np.array([0.05])}, TAU)
    assert found["case_3"] == 1.0  # v₀ = .01 is four times Δ'² = .0025
    assert found["agreement_p5"] == 1.0


def test_a_round_without_movement_has_shares_alone() -> None:
    found = describe_denominators({}, {"a": np.zeros(2)}, {"a": np.zeros(2)}, {"a": np.zeros(2)}, TAU)
    assert (found["moved"], found["below_tau"], found["agreement_p95"]) == (0.0, 1.0, 1.0)
