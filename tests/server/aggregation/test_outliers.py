"""Updates far from the others."""

import numpy as np

from common.arrays import Arrays
from server.aggregation.outliers import find_outliers


def vectors(**values: tuple[float, float]) -> dict[str, Arrays]:
    return {name: {"w": np.array(value)} for name, value in values.items()}


def test_updates_far_from_the_median_are_outliers_and_never_half_of_them() -> None:
    found = find_outliers(vectors(a=(1, 0), b=(1, 0.1), c=(1.1, 0), d=(-9, 0), e=(0, 30)))
    assert sorted(found) == ["d", "e"]
    assert find_outliers(vectors(a=(1, 0), b=(0, 9), c=(-10, 0))) == ["c"]


def test_the_farthest_counts_if_none_is_far() -> None:
    assert find_outliers(vectors(a=(1, 0), b=(1, 0.1), c=(1.2, 0))) == ["c"]


def test_of_fewer_than_three_updates_none_is_singled_out() -> None:
    assert find_outliers(vectors(a=(1, 0), b=(2000, 0))) == []
    assert find_outliers(vectors(a=(1, 0))) == []
    assert find_outliers(vectors(a=(0, 0), b=(0, 0), c=(0, 0))) == []
