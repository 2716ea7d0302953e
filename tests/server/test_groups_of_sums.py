"""Groups of a round's secure sums: who is in which, and the median of their means."""

import numpy as np
import pytest

from common.contribution import MAGNITUDE, UPDATE, Contribution, Member
from server.aggregation.robust import median_of
from server.secure.sums import assign

NAMES = [f"c{k:02}" for k in range(11)]


def opened(*names: str, update: list[float], magnitude: list[float]) -> Contribution:
    """Return the contribution of an opened sum whose members made three local steps."""
    total = Contribution()
    total.record([Member(name, steps=3) for name in names])
    total.dtypes = {"w": np.dtype(np.float32)}
    for kind, mean in ((UPDATE, update), (MAGNITUDE, magnitude)):
        total.add_sums(kind, {"w": np.array(mean) * len(names) / 3})
    return total


@pytest.mark.parametrize("groups", [3, 4])
def test_groups_have_nearly_equal_sizes_and_are_drawn_anew_in_each_round(groups: int) -> None:
    drawn = [assign(NAMES, groups, 7, number, {}) for number in range(1, 6)]
    for one in drawn:
        sizes = np.bincount([*one.values()])
        assert (len(sizes), sizes.max() - sizes.min() <= 1, one.keys()) == (groups, True, set(NAMES))
    assert len({tuple(sorted(one.items())) for one in drawn}) == 5
    assert drawn[0] == assign(NAMES[::-1], groups, 7, 1, {}) != assign(NAMES, groups, 8, 1, {})


def test_who_was_asked_before_stays_and_the_others_fill_the_smallest_group() -> None:
    before = {"c00": 2, "c01": 2, "gone": 1}
    found = assign(NAMES, 3, 7, 1, before)
    assert {name: found[name] for name in before} == before
    assert np.bincount([*found.values()]).tolist() == [4, 4, 4]


def test_the_median_is_that_of_each_number_and_keeps_magnitudes_above_it() -> None:
    honest, other = opened("a", update=[1, 2], magnitude=[1, 2]), opened("b", update=[3, -2], magnitude=[4, 2])
    liar = opened("c", update=[1e30, -1e30], magnitude=[1e30, 1e30])
    found = median_of([other, liar, honest])
    assert found.names == ["a", "b", "c"]
    assert found.steps == {"a": 3, "b": 3, "c": 3}
    delta, magnitude = found.mean_and_magnitude()
    np.testing.assert_allclose(delta["w"], np.float32([3, -2]), rtol=1e-6)
    assert (np.abs(delta["w"]) <= magnitude["w"]).all()
    assert delta["w"].dtype == np.float32
    assert median_of([honest]) is honest
