"""Difference of two variables by hour: template 4, reading by reading."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

from common.logic.inference import infer_intra_task, intra_task
from common.logic.semantics import satisfied
from common.tasks.traffic.properties import Differences, Ranges, groups_of, infer, satisfaction, to_differences
from tests.common.logic.drawn import closest

numbers = st.floats(-8, 8, allow_subnormal=False, width=32)
traces = hn.arrays(np.float64, (3, 4, 3), elements=numbers)
ROWS = np.tile([0, 0, 5, 6], (3, 1))
bounds = hn.arrays(np.float64, (7, 1), elements=numbers)
NAMES = ("a", "b", "c")


def of(low: np.ndarray) -> Differences:
    return Differences(low, np.full_like(low, np.inf), (2, 0))


@given(bounds, traces)
def test_satisfaction_is_that_of_the_formula(low: np.ndarray, values: np.ndarray) -> None:
    phi = intra_task("c", "a", [(0, 1), (2, 2), (3, 3)], low[[0, 5, 6], 0].tolist())
    satisfied_share = satisfaction(of(low).excess(values, ROWS))["rho_trace"]
    assert satisfied_share == float(satisfied(phi, torch.from_numpy(values), NAMES).double().mean())


@given(bounds, traces)
def test_the_projection_is_the_teacher_s_closest_trace(low: np.ndarray, values: np.ndarray) -> None:
    phi = intra_task("c", "a", [(0, 1), (2, 2), (3, 3)], low[[0, 5, 6], 0].tolist())
    corrected = of(low).project(values, ROWS)
    np.testing.assert_allclose(corrected, closest(phi, torch.from_numpy(values), NAMES).numpy(), atol=1e-9)
    np.testing.assert_allclose(np.abs(corrected - values), of(low).excess(values, ROWS), atol=1e-12)
    assert not of(low - 1e-9).excess(corrected, ROWS).any()
    assert np.array_equal(corrected[..., 1], values[..., 1]), "a variable that is not compared stays"


def test_inference_is_the_lower_side_of_the_ranges_of_the_difference() -> None:
    rng = np.random.default_rng(0)
    values, rows = rng.normal(size=(40, 2)), np.arange(40) % 7
    ranges = infer(values[:, [1]] - values[:, [0]], rows, groups_of("hourly", 7))
    inferred = to_differences(ranges, (1, 0))
    weekend = torch.from_numpy(values[rows >= 5])
    expected = infer_intra_task(weekend[:, 1, None], weekend[:, 0, None], [(0, 0)], "x", "y").parameters["bound"]
    np.testing.assert_allclose(inferred.low[6, 0], float(expected[0]))
    assert not inferred.excess(values, rows).any()
    assert Differences(inferred.low + 2e-6, inferred.high, (1, 0)).excess(values, rows).any()


def test_width_and_bounds_of_single_variables_are_nan() -> None:
    inferred = of(np.zeros((7, 1)))
    assert np.isnan(inferred.width)
    assert all(np.isnan(end).all() for end in inferred.reading_limits(np.zeros((4, 3)), ROWS[0]))


def test_a_margin_moves_the_lower_bound_and_weakening_keeps_the_pair() -> None:
    inferred = to_differences(Ranges(np.zeros((7, 1)), np.ones((7, 1)), spread=np.full((7, 1), 2.0)), (2, 0))
    traces = np.zeros((1, 3))
    traces[0, 0] = 1.0  # x₁ − x₂ = −1
    assert inferred.excess(traces, ROWS[:1, 0], 0.5).max() == pytest.approx(0.0, abs=2e-6)
    assert inferred.excess(traces, ROWS[:1, 0], 0.25).max() == pytest.approx(0.25, abs=2e-6)
    wider = inferred.weaken(np.full((7, 1), -0.5), inferred.high)
    assert isinstance(wider, Differences)
    assert wider.pair == (2, 0)
    np.testing.assert_array_equal(wider.low, -0.5)
