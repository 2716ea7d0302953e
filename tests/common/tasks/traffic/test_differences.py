"""One variable above another by the clock: the logic's template 4, reading by reading."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

from common.logic.inference import infer_intra_task
from common.logic.semantics import satisfied
from common.logic.teacher import closest
from common.logic.templates import intra_task
from common.tasks.traffic.differences import Differences, apart
from common.tasks.traffic.ranges import Ranges, groups_of, infer, obedience

numbers = st.floats(-8, 8, allow_subnormal=False, width=32)
traces = hn.arrays(np.float64, (3, 4, 3), elements=numbers)
ROWS = np.tile([0, 0, 5, 6], (3, 1))
bounds = hn.arrays(np.float64, (7, 1), elements=numbers)
NAMES = ("a", "b", "c")


def of(low: np.ndarray) -> Differences:
    return Differences(low, np.full_like(low, np.inf), (2, 0))


@given(bounds, traces)
def test_obeying_is_what_the_formula_says(low: np.ndarray, values: np.ndarray) -> None:
    phi = intra_task("c", "a", [(0, 1), (2, 2), (3, 3)], low[[0, 5, 6], 0].tolist())
    obeys = obedience(of(low).excess(values, ROWS))["rho_trace"]
    assert obeys == float(satisfied(phi, torch.from_numpy(values), NAMES).double().mean())


@given(bounds, traces)
def test_corrected_is_the_teacher_s_closest_trace(low: np.ndarray, values: np.ndarray) -> None:
    phi = intra_task("c", "a", [(0, 1), (2, 2), (3, 3)], low[[0, 5, 6], 0].tolist())
    found = of(low).corrected(values, ROWS)
    np.testing.assert_allclose(found, closest(phi, torch.from_numpy(values), NAMES).numpy(), atol=1e-9)
    np.testing.assert_allclose(np.abs(found - values), of(low).excess(values, ROWS), atol=1e-12)
    assert not of(low - 1e-9).excess(found, ROWS).any()
    assert np.array_equal(found[..., 1], values[..., 1]), "a variable that is not compared stays"


def test_inference_is_the_lower_side_of_the_ranges_of_the_difference() -> None:
    rng = np.random.default_rng(0)
    values, rows = rng.normal(size=(40, 2)), np.arange(40) % 7
    ranges = infer(values[:, [1]] - values[:, [0]], rows, groups_of("hourly", 7))
    found = apart(ranges, (1, 0))
    weekend = torch.from_numpy(values[rows >= 5])
    expected = infer_intra_task(weekend[:, 1, None], weekend[:, 0, None], [(0, 0)], "x", "y").bound
    np.testing.assert_allclose(found.low[6, 0], float(expected[0]))
    assert not found.excess(values, rows).any()
    assert Differences(found.low + 2e-6, found.high, (1, 0)).excess(values, rows).any()


def test_there_is_no_width_and_no_bound_of_a_variable_by_itself() -> None:
    found = of(np.zeros((7, 1)))
    assert np.isnan(found.width)
    assert all(np.isnan(end).all() for end in found.limits(np.zeros((4, 3)), ROWS[0]))


def test_weaker_and_widened_keep_the_pair() -> None:
    found = of(np.zeros((7, 1)))
    wider = found.widened(0.5).weaker(np.full((7, 1), -0.2), found.high)
    assert isinstance(wider, Differences)
    assert wider.pair == (2, 0)
    np.testing.assert_array_equal(wider.low, -0.5)
    assert isinstance(Ranges(found.low, found.high).widened(1.0), Ranges)
