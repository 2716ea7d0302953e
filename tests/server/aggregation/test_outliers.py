"""Updates far from the others."""

from functools import partial

import numpy as np
import pytest

from common.arrays import Arrays
from server.aggregation import lengths as outliers
from server.aggregation.lengths import find_outliers
from server.aggregation.replies import Load


def vectors(**values: tuple[float, float]) -> dict[str, Load]:
    return {name: partial(_vector, value) for name, value in values.items()}


def _vector(value: tuple[float, float]) -> Arrays:
    return {"w": np.array(value)}


def test_medians_of_parts_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of one number each."""
    far = vectors(a=(1, 0), b=(1, 0.1), c=(1.1, 0), d=(-9, 0), e=(0, 30))
    whole = find_outliers(far)
    monkeypatch.setattr(outliers, "AT_ONCE", 0)
    assert find_outliers(far) == whole


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
