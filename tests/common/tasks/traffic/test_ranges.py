"""Ranges by hour of the week: tightest, weakest of several, moved by margins, projection."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

from common.tasks.traffic.properties import Ranges, groups_of, infer, satisfaction
from server.aggregation.clusters import pool_ranges

WEEK = 168
HOURLY = groups_of("hourly", WEEK)
DAILY = groups_of("hourly", 7)
"""One reading a day: working days are one group, the weekend another."""

numbers = st.floats(-8, 8, allow_subnormal=False)
traces = hn.arrays(np.float64, (3, 4, 2), elements=numbers)
tables = hn.arrays(np.float64, (2, 7, 2), elements=numbers).map(lambda ends: Ranges(ends.min(0), ends.max(0)))
slots = hn.arrays(np.int64, (3, 4), elements=st.integers(0, 6))


def sample_hours(weeks: int, seed: int, variables: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values, slots and days: a level per hour of the week, a random level per day, and noise."""
    rng = np.random.default_rng(seed)
    hours = np.arange(weeks * WEEK)
    level = np.sin(2 * np.pi * hours / 24) + (hours % WEEK >= 120)
    day = np.repeat(rng.normal(0, 0.3, 7 * weeks), 24)
    values = (level + day)[:, None] + rng.normal(0, 0.2, (len(hours), variables))
    return values, hours % WEEK, hours // 24


def test_an_hour_of_working_days_and_one_of_the_weekend_are_two_groups() -> None:
    assert HOURLY[:24].tolist() == HOURLY[96:120].tolist() == list(range(24))
    assert HOURLY[120:144].tolist() == HOURLY[144:].tolist() == list(range(24, 48))
    quarters = groups_of("hourly", 4 * WEEK)
    assert quarters[[0, 3, 4, 4 * 120, 4 * 168 - 1]].tolist() == [0, 0, 1, 24, 47]
    assert DAILY.tolist() == [0] * 5 + [24] * 2


def test_the_paper_s_groups_are_two_hours_of_any_day() -> None:
    groups = groups_of("paper", WEEK)
    assert groups[:24].tolist() == groups[144:].tolist() == [hour // 2 for hour in range(24)]
    assert groups_of("paper", 7).tolist() == [0] * 7


@given(hn.arrays(np.float64, (30, 2), elements=numbers), hn.arrays(np.int64, 30, elements=st.integers(0, 6)))
def test_every_reading_satisfies_inferred_ranges_and_none_can_be_tightened(
    values: np.ndarray, places: np.ndarray
) -> None:
    ranges = infer(values, places, DAILY)
    assert not ranges.excess(values, places).any()
    for group in np.unique(DAILY[places]):
        for variable in range(2):
            push = np.zeros((7, 2))
            push[group == DAILY, variable] = 1e-6
            assert Ranges(ranges.low + push, ranges.high).excess(values, places).any()
            assert Ranges(ranges.low, ranges.high - push).excess(values, places).any()


def test_readings_of_a_group_share_a_range_and_an_empty_group_has_the_range_of_all() -> None:
    ranges = infer(np.array([[1.0], [5.0], [3.0]]), np.array([0, 4, 2]), DAILY)
    assert ranges.low.tolist() == [[1.0]] * 7
    assert ranges.high.tolist() == [[5.0]] * 7
    assert ranges.width == 4.0
    with pytest.raises(ValueError, match="without readings"):
        infer(np.zeros((0, 1)), np.zeros(0, np.int64), DAILY)


def test_the_weakest_of_the_members_properties_is_the_property_of_their_pooled_data() -> None:
    members = [sample_hours(3, seed, variables=2) for seed in range(4)]
    each = [infer(values, places, HOURLY) for values, places, _ in members]
    pooled = infer(np.concatenate([m[0] for m in members]), np.concatenate([m[1] for m in members]), HOURLY)
    pooled_bounds = pool_ranges([ranges.low for ranges in each], [ranges.high for ranges in each])
    np.testing.assert_array_equal(pooled_bounds["low"], pooled.low)
    np.testing.assert_array_equal(pooled_bounds["high"], pooled.high)
    assert not any(Ranges(**pooled_bounds).excess(values, places).any() for values, places, _ in members)


def test_bounds_move_by_a_margin_in_spreads_and_stay_above_the_least() -> None:
    """Check bounds −1 and 3 of spread 2, with a least reading of 0, for two windows of other margins."""
    table, rows = np.ones((7, 1)), np.zeros((2, 3), np.int64)
    ranges = Ranges(-table, 3 * table, spread=2 * table).above(np.zeros((1, 1)))
    assert (ranges.low[0, 0], ranges.high[0, 0]) == (0.0, 3.0)
    low, high = ranges.limits(rows, np.array([[0.5], [-1.0]]))
    assert low[:, 0, 0].tolist() == [0.0, 1.0], "a margin of −1 spread moves −1, not the raised bound 0"
    assert high[:, 0, 0].tolist() == [4.0, 1.0]
    fixed = Ranges(-table, 3 * table)
    np.testing.assert_array_equal(fixed.limits(rows, 5.0)[1], 3.0)


def test_satisfaction_by_hand() -> None:
    """Check two traces of five readings of two variables; the first violates its third reading."""
    excess = np.zeros((2, 5, 2))
    excess[0, 2, 1] = 0.1
    assert satisfaction(excess) == {"rho_point": 9 / 10, "rho_window": 3 / 4, "rho_trace": 1 / 2}
    assert satisfaction(excess[:, :1]) == {"rho_point": 1.0, "rho_window": 1.0, "rho_trace": 1.0}


@given(tables, traces, slots, hn.arrays(np.float64, (3, 4, 2), elements=st.floats(0, 1)))
def test_the_projection_is_the_closest_satisfying_trace(
    ranges: Ranges, student: np.ndarray, places: np.ndarray, where: np.ndarray
) -> None:
    project = ranges.project(student, places)
    assert not ranges.excess(project, places).any()
    np.testing.assert_array_equal(ranges.project(project, places), project)
    np.testing.assert_allclose(np.abs(student - project), ranges.excess(student, places), atol=1e-12)
    low, high = ranges.low[places], ranges.high[places]
    other = low + where * (high - low)
    assert np.abs(student - project).sum() <= np.abs(student - other).sum() + 1e-9
    assert np.square(student - project).sum() <= np.square(student - other).sum() + 1e-9


@given(tables, traces, slots, hn.arrays(np.float64, (3, 4, 2), elements=st.floats(0, 1)))
def test_the_teacher_never_increases_the_l2_error_if_the_truth_satisfies_the_property(
    ranges: Ranges, student: np.ndarray, places: np.ndarray, where: np.ndarray
) -> None:
    low, high = ranges.low[places], ranges.high[places]
    truth = np.clip(low + where * (high - low), low, high)
    after = np.square(ranges.project(student, places) - truth).sum(axis=(1, 2))
    assert np.all(after <= np.square(student - truth).sum(axis=(1, 2)))


def test_ranges_are_sent_as_float32_tables() -> None:
    arrays = infer(*sample_hours(1, 0)[:2], HOURLY).arrays()
    assert {name: (a.dtype, a.shape) for name, a in arrays.items()} == {
        "low": (np.dtype(np.float32), (WEEK, 1)),
        "high": (np.dtype(np.float32), (WEEK, 1)),
    }
