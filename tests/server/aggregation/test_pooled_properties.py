"""Groups of members alike in shape: none small, none sharing a member, and each with its members' weakest property."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

from common.tasks.traffic.ranges import POOLED
from server.aggregation.pooled_properties import LEAST, alike, neighbourhoods

WEEK = 7


def members(count: int, seed: int = 0) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Bounds of `count` clients, float32; even ones lie around 0, odd ones around 9."""
    rng = np.random.default_rng(seed)
    low = {f"c{k:03}": (9 * (k % 2) + rng.random((WEEK, 2))).astype(np.float32) for k in range(count)}
    return low, {name: a + 2 for name, a in low.items()}


@given(hn.arrays(np.float64, st.tuples(st.integers(LEAST, 40), st.integers(1, 3)), elements=st.floats(-9, 9)))
def test_every_point_is_in_one_group_and_no_group_is_small(points: np.ndarray) -> None:
    groups = alike(points)
    assert sorted(k for group in groups for k in group) == list(range(len(points)))
    assert [len(group) for group in groups[:-1]] == [LEAST] * (len(groups) - 1)
    assert LEAST <= len(groups[-1]) < 2 * LEAST


def test_what_lies_apart_is_pooled_apart() -> None:
    low, high = members(20)
    found = neighbourhoods(low, high)
    assert [found[name].shape for name in POOLED] == [(4, WEEK, 2)] * 2
    centres = sorted(((found[POOLED[0]] + found[POOLED[1]]) / 2).mean((1, 2)).tolist())
    assert centres == pytest.approx([1.5, 1.5, 10.5, 10.5], abs=0.2)


def test_a_group_s_property_is_the_weakest_of_its_members() -> None:
    low, high = members(7)
    found = neighbourhoods(low, high)
    np.testing.assert_array_equal(found[POOLED[0]], [np.min(list(low.values()), axis=0)])
    np.testing.assert_array_equal(found[POOLED[1]], [np.max(list(high.values()), axis=0)])


@pytest.mark.parametrize("count", [0, 1, LEAST - 1])
def test_of_few_members_nothing_is_told(count: int) -> None:
    assert neighbourhoods(*members(count)) == {}


def test_bounds_that_fit_no_other_and_bounds_that_say_nothing_are_left_out() -> None:
    low, high = members(LEAST + 1)
    low["c000"], high["c000"] = np.zeros((3, 2)), np.ones((3, 2))
    low["c00x"], high["c00x"] = np.full((WEEK, 2), -np.inf), np.full((WEEK, 2), np.inf)
    found = neighbourhoods(low, high)
    rest = [low[f"c{k:03}"] for k in range(1, LEAST + 1)]
    np.testing.assert_array_equal(found[POOLED[0]][0], np.min(rest, axis=0))
    assert neighbourhoods({n: low[n] for n in list(low)[:LEAST]}, high) == {}


def test_one_sided_bounds_are_pooled_by_the_side_they_have() -> None:
    low, _ = members(20)
    found = neighbourhoods(low, {name: np.full_like(a, np.inf) for name, a in low.items()})
    assert np.isinf(found[POOLED[1]]).all()
    assert sorted(found[POOLED[0]].mean((1, 2)) > 4) == [False, False, True, True]


def test_who_is_open_on_a_side_that_enough_others_close_opens_it_for_nobody() -> None:
    low, high = members(11)
    expected = neighbourhoods(low, high)
    low["c00x"], high["c00x"] = low["c000"], np.full((WEEK, 2), np.inf)
    for name, table in neighbourhoods(low, high).items():
        np.testing.assert_array_equal(table, expected[name])


def test_a_bound_that_fewer_have_than_a_group_takes_is_not_told() -> None:
    low, high = members(LEAST + 3)
    for name in list(high)[LEAST - 1 :]:
        high[name] = np.full((WEEK, 2), np.inf)
    found = neighbourhoods(low, high)
    assert np.isposinf(found[POOLED[1]]).all()
    np.testing.assert_array_equal(found[POOLED[0]], [np.min(list(low.values()), axis=0)])


def test_the_order_of_members_does_not_matter() -> None:
    low, high = members(23)
    turned = neighbourhoods(dict(reversed(low.items())), high)
    for name, table in neighbourhoods(low, high).items():
        np.testing.assert_array_equal(turned[name], table)
