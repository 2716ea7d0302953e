"""Clipping keeps vectors inside the ball, whatever their size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from common.arrays import Floats
from common.errors import RefusedError
from common.privacy.vectors import Order, clip

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
VECTORS = arrays(np.float64, st.integers(1, 20), elements=NUMBERS)


def exact_norm(vector: Floats, order: Order) -> np.longdouble:
    wide = vector.astype(np.longdouble)
    return np.longdouble(np.abs(wide).sum() if order == 1 else np.sqrt((wide * wide).sum()))


@given(VECTORS, st.floats(1e-3, 1e3), st.sampled_from([1, 2]), st.booleans())
def test_the_norm_is_within_the_bound(vector: Floats, largest: float, order: Order, normalise: bool) -> None:
    before = vector.copy()
    clipped = clip(vector, largest, order, normalise)
    assert exact_norm(clipped, order) <= largest
    if normalise and vector.any():
        assert exact_norm(clipped, order) == pytest.approx(largest, rel=1e-9)
    np.testing.assert_array_equal(vector, before)


@given(VECTORS, st.sampled_from([1, 2]))
def test_what_is_short_stays_as_it_is(vector: Floats, order: Order) -> None:
    short = vector / len(vector) / (1 + np.abs(vector).max())
    np.testing.assert_array_equal(clip(short, 1.1, order, normalise=False), short)


def test_the_direction_stays() -> None:
    np.testing.assert_allclose(clip(np.array([3.0, -4.0]), 1, 2, normalise=False), [0.6, -0.8])
    np.testing.assert_allclose(clip(np.array([3.0, -4.0]), 1, 1, normalise=False), [3 / 7, -4 / 7])
    np.testing.assert_allclose(clip(np.array([1e300, -1e300]), 2, 1, normalise=False), [1, -1])
    np.testing.assert_allclose(clip(np.array([1e-300, 0]), 2, 2, normalise=True), [2, 0])


@pytest.mark.parametrize("normalise", [False, True])
def test_zero_stays_zero(normalise: bool) -> None:
    np.testing.assert_array_equal(clip(np.zeros(3), 1, 2, normalise), np.zeros(3))
    assert clip(np.zeros(0), 1, 2, normalise).size == 0


@pytest.mark.parametrize("broken", [[np.nan, 1], [np.inf, 1], [-np.inf, np.inf], [[1.0, 2.0]]])
def test_what_is_no_row_of_finite_numbers_is_refused(broken: list[float]) -> None:
    with pytest.raises(RefusedError, match="release"):
        clip(np.array(broken), 1, 2, normalise=False)
