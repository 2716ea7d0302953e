"""Groups of similar members: none small, none overlapping, each with its members' weakest property."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

from common.tasks.traffic.properties import POOLED
from server.methods.fedstl import MIN_GROUP_SIZE, group_nearest, pool_neighbors

WEEK = 7


def members(count: int, seed: int = 0) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Bounds of `count` clients, float32; even ones lie around 0, odd ones around 9."""
    rng = np.random.default_rng(seed)
    low = {f"c{k:03}": (9 * (k % 2) + rng.random((WEEK, 2))).astype(np.float32) for k in range(count)}
    return low, {name: a + 2 for name, a in low.items()}


@given(hn.arrays(np.float64, st.tuples(st.integers(MIN_GROUP_SIZE, 40), st.integers(1, 3)), elements=st.floats(-9, 9)))
def test_every_point_is_in_one_group_and_no_group_is_small(points: np.ndarray) -> None:
    groups = group_nearest(points)
    assert sorted(k for group in groups for k in group) == list(range(len(points)))
    assert [len(group) for group in groups[:-1]] == [MIN_GROUP_SIZE] * (len(groups) - 1)
    assert MIN_GROUP_SIZE <= len(groups[-1]) < 2 * MIN_GROUP_SIZE


def test_distant_members_are_pooled_separately() -> None:
    low, high = members(20)
    found = pool_neighbors(low, high)
    assert [found[name].shape for name in POOLED] == [(4, WEEK, 2)] * 2
    centres = sorted(((found[POOLED[0]] + found[POOLED[1]]) / 2).mean((1, 2)).tolist())
    assert centres == pytest.approx([1.5, 1.5, 10.5, 10.5], abs=0.2)


def test_a_group_s_property_is_the_weakest_of_its_members() -> None:
    low, high = members(7)
    found = pool_neighbors(low, high)
    np.testing.assert_array_equal(found[POOLED[0]], [np.min(list(low.values()), axis=0)])
    np.testing.assert_array_equal(found[POOLED[1]], [np.max(list(high.values()), axis=0)])


@pytest.mark.parametrize("count", [0, 1, MIN_GROUP_SIZE - 1])
def test_few_members_have_no_pooled_property(count: int) -> None:
    assert pool_neighbors(*members(count)) == {}


def test_bounds_of_uncommon_shape_and_bounds_without_values_are_omitted() -> None:
    low, high = members(MIN_GROUP_SIZE + 1)
    low["c000"], high["c000"] = np.zeros((3, 2)), np.ones((3, 2))
    low["c00x"], high["c00x"] = np.full((WEEK, 2), -np.inf), np.full((WEEK, 2), np.inf)
    found = pool_neighbors(low, high)
    rest = [low[f"c{k:03}"] for k in range(1, MIN_GROUP_SIZE + 1)]
    np.testing.assert_array_equal(found[POOLED[0]][0], np.min(rest, axis=0))
    assert pool_neighbors({n: low[n] for n in list(low)[:MIN_GROUP_SIZE]}, high) == {}


def test_one_sided_bounds_are_pooled_by_the_side_they_have() -> None:
    low, _ = members(20)
    found = pool_neighbors(low, {name: np.full_like(a, np.inf) for name, a in low.items()})
    assert np.isinf(found[POOLED[1]]).all()
    assert sorted(found[POOLED[0]].mean((1, 2)) > 4) == [False, False, True, True]


def test_a_member_without_a_common_bound_is_omitted() -> None:
    low, high = members(11)
    expected = pool_neighbors(low, high)
    low["c00x"], high["c00x"] = low["c000"], np.full((WEEK, 2), np.inf)
    for name, table in pool_neighbors(low, high).items():
        np.testing.assert_array_equal(table, expected[name])


def test_a_bound_of_fewer_members_than_a_group_is_not_pooled() -> None:
    low, high = members(MIN_GROUP_SIZE + 3)
    for name in list(high)[MIN_GROUP_SIZE - 1 :]:
        high[name] = np.full((WEEK, 2), np.inf)
    found = pool_neighbors(low, high)
    assert np.isposinf(found[POOLED[1]]).all()
    np.testing.assert_array_equal(found[POOLED[0]], [np.min(list(low.values()), axis=0)])


def test_the_order_of_members_does_not_matter() -> None:
    low, high = members(23)
    turned = pool_neighbors(dict(reversed(low.items())), high)
    for name, table in pool_neighbors(low, high).items():
        np.testing.assert_array_equal(turned[name], table)
