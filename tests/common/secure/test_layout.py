"""Layouts of sums: blocks of one vector, and the way back to arrays."""

import numpy as np
import pytest

from common.errors import WireError
from common.secure.layout import SumLayout

ARRAYS = {
    "update/b": np.array([[1, 2], [3, 4]], np.float32),
    "update/a": np.array([5.0]),
    "gradient/a": np.array([6.0]),
    "weight": np.array([7.0]),
}


def test_blocks_are_prefixes_in_ascending_order() -> None:
    assert SumLayout.of(ARRAYS).blocks == (("gradient", 1), ("update", 5), ("weight", 1))
    assert SumLayout.of(ARRAYS).size == 7


def test_arrays_return_with_their_shapes_and_types() -> None:
    layout = SumLayout.of(ARRAYS)
    vector = layout.vector(ARRAYS)
    assert vector.tolist() == [6, 5, 1, 2, 3, 4, 7]
    returned = layout.arrays(vector, ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(returned[name], array)
        assert returned[name].dtype == array.dtype


def test_other_arrays_and_vectors_do_not_fit() -> None:
    layout = SumLayout.of(ARRAYS)
    with pytest.raises(WireError, match="do not fit"):
        layout.vector({"update/a": np.zeros(7)})
    with pytest.raises(WireError, match="does not fit"):
        layout.arrays(np.zeros(6), ARRAYS)


@pytest.mark.parametrize("size", [0, 4_000_001])
def test_sizes_out_of_range_are_refused(size: int) -> None:
    with pytest.raises(WireError, match="numbers is not possible"):
        SumLayout.of({"update": np.zeros(size)})
