"""Ranges by the clock: tight, weakest when pooled, calibrated, and a projection."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

from common.tasks.traffic.ranges import Ranges, calibrated, groups_of, infer, obedience
from server.aggregation.clusters import pool_ranges

WEEK = 168
HOURLY = groups_of("hourly", WEEK)
DAILY = groups_of("hourly", 7)
"""One reading a day: working days are one group, the weekend another."""

numbers = st.floats(-8, 8, allow_subnormal=False)
traces = hn.arrays(np.float64, (3, 4, 2), elements=numbers)
tables = hn.arrays(np.float64, (2, 7, 2), elements=numbers).map(lambda ends: Ranges(ends.min(0), ends.max(0)))
slots = hn.arrays(np.int64, (3, 4), elements=st.integers(0, 6))


def drawn(weeks: int, seed: int, variables: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, slots and days of hours that follow one law: a level for each hour of the week, noise, a good or bad day."""
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
def test_inferred_ranges_hold_on_every_reading_and_none_can_be_tightened(
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


def test_readings_of_one_group_share_a_range_and_a_group_never_seen_gets_everything() -> None:
    ranges = infer(np.array([[1.0], [5.0], [3.0]]), np.array([0, 4, 2]), DAILY)
    assert ranges.low.tolist() == [[1.0]] * 7
    assert ranges.high.tolist() == [[5.0]] * 7
    assert (ranges.width, ranges.widened(0.5).width) == (4.0, 5.0)
    with pytest.raises(ValueError, match="no reading"):
        infer(np.zeros((0, 1)), np.zeros(0, np.int64), DAILY)


def test_the_weakest_of_the_members_properties_is_the_property_of_their_pooled_data() -> None:
    members = [drawn(3, seed, variables=2) for seed in range(4)]
    each = [infer(values, places, HOURLY) for values, places, _ in members]
    pooled = infer(np.concatenate([m[0] for m in members]), np.concatenate([m[1] for m in members]), HOURLY)
    found = pool_ranges([one.low for one in each], [one.high for one in each])
    np.testing.assert_array_equal(found["low"], pooled.low)
    np.testing.assert_array_equal(found["high"], pooled.high)
    assert not any(Ranges(**found).excess(values, places).any() for values, places, _ in members)


def test_the_margin_by_hand() -> None:
    """Two weeks of a reading a day, 0 and then 1, but 3 on the second Saturday: each week is judged by the other.

    The days of the first week lie 1 below the range of the others (2 of its weekend are in 1…3, so by 1), those of the
    second 1 above, its Saturday 3. The worst of 14 days is 3, the other 13 are 1.
    """
    values = np.repeat([0.0, 1.0], 7)[:, None]
    values[12] = 3.0
    places, days = np.tile(np.arange(7), 2), np.arange(14)
    usual, held, seen = calibrated(values, places, days, DAILY, 0.8, 1)  # the ⌈.8·15⌉ = 12th of 14
    assert (held, seen) == (13 / 14, 1.0)
    assert usual.low[:, 0].tolist() == [-1.0] * 7
    assert usual.high[:, 0].tolist() == [2.0] * 5 + [4.0] * 2
    widest, held, _ = calibrated(values, places, days, DAILY, 0.99, 1)
    assert (held, widest.high[:, 0].tolist()) == (1.0, [4.0] * 5 + [6.0] * 2)


def test_calibrated_ranges_hold_on_new_days_of_the_same_law_as_often_as_stated() -> None:
    """Hundreds of new days a seed; ranges of all weeks are a little wider than those each week was judged by."""
    for coverage in (0.8, 0.9):
        shares = []
        for seed in range(6):
            values, places, days = drawn(12, seed)
            ranges, held, _ = calibrated(values, places, days, HOURLY, coverage, 24)
            later, at, _ = drawn(60, 100 + seed)
            shares.append(np.mean(~(ranges.excess(later, at) > 0).reshape(-1, 24).any(axis=1)))
            assert coverage <= held <= coverage + 2 / 84
        assert coverage - 0.04 <= np.mean(shares) <= coverage + 0.06


@given(hn.arrays(np.float64, (21, 1), elements=numbers), st.floats(0.05, 0.95))
def test_the_margin_is_never_negative_and_grows_with_the_coverage(values: np.ndarray, coverage: float) -> None:
    places, days = np.tile(np.arange(7), 3), np.arange(21)
    plain = infer(values, places, DAILY)
    ranges, held, _ = calibrated(values, places, days, DAILY, coverage, 1)
    wider, more, _ = calibrated(values, places, days, DAILY, (1 + coverage) / 2, 1)
    assert np.all(ranges.low <= plain.low)
    assert np.all(ranges.high >= plain.high)
    assert wider.width >= ranges.width
    assert more >= held


def test_days_that_lack_readings_do_not_count_as_days_that_obeyed() -> None:
    """Four weeks in full, then forty weeks with 5 of 24 readings a day, whose worst are far less than a whole day's."""
    shares, seen = [], []
    for seed in range(6):
        values, places, days = drawn(44, seed)
        known = (days < 28) | (
            np.random.default_rng(seed).permuted(np.tile(np.arange(24), (308, 1)), axis=1).ravel() < 5
        )
        found = calibrated(values[known], places[known], days[known], HOURLY, 0.9, 24)
        later, at, _ = drawn(60, 100 + seed)
        shares.append(np.mean(~(found.ranges.excess(later, at) > 0).reshape(-1, 24).any(axis=1)))
        seen.append(found.seen)
    assert seen == [1.0] * 6
    assert np.mean(shares) >= 0.9


def test_only_whole_days_set_the_margin_where_there_are_two_weeks_of_them() -> None:
    """Days of two readings: fourteen at 0, one at 1, and half a day at 9. Judged by the others, they are 0, 1 and 9 outside."""
    values = np.repeat([0.0] * 14 + [1.0, 9.0], 2)[:-1, None]
    days, rows, groups = np.repeat(np.arange(16), 2)[:-1], np.zeros(31, np.int64), np.zeros(7, np.int64)
    found = calibrated(values, rows, days, groups, 0.99, 2)
    assert (found.held, found.seen, found.ranges.high.max()) == (1.0, 1.0, 10.0)
    few = calibrated(values[3:], rows[3:], days[3:], groups, 0.99, 2)
    assert (few.held, few.seen, few.ranges.high.max()) == (1.0, 28 / 30, 18.0), "13 whole days and two halves"


@pytest.mark.parametrize("kept", [np.arange(24 * 7), np.arange(24 * 20)[np.arange(24 * 20) % 24 < 16]])
def test_less_than_two_weeks_of_readings_cannot_be_judged(kept: np.ndarray) -> None:
    """A week; twenty days of 16 hours."""
    values, places, days = (table[kept] for table in drawn(3, 0))
    ranges, held, seen = calibrated(values, places, days, HOURLY, 0.9, 24)
    plain = infer(values, places, HOURLY)
    assert np.isnan([held, seen]).all()
    np.testing.assert_array_equal(ranges.low, plain.low)
    np.testing.assert_array_equal(ranges.high, plain.high)


def test_obedience_by_hand() -> None:
    """Two traces of five readings of two variables: the first breaks its third reading, the second obeys."""
    excess = np.zeros((2, 5, 2))
    excess[0, 2, 1] = 0.1
    assert obedience(excess) == {"rho_point": 9 / 10, "rho_window": 3 / 4, "rho_trace": 1 / 2}
    assert obedience(excess[:, :1]) == {"rho_point": 1.0, "rho_window": 1.0, "rho_trace": 1.0}


@given(tables, traces, slots, hn.arrays(np.float64, (3, 4, 2), elements=st.floats(0, 1)))
def test_corrected_obeys_and_nothing_that_obeys_is_closer(
    ranges: Ranges, student: np.ndarray, places: np.ndarray, where: np.ndarray
) -> None:
    corrected = ranges.corrected(student, places)
    assert not ranges.excess(corrected, places).any()
    np.testing.assert_array_equal(ranges.corrected(corrected, places), corrected)
    np.testing.assert_allclose(np.abs(student - corrected), ranges.excess(student, places), atol=1e-12)
    low, high = ranges.low[places], ranges.high[places]
    other = low + where * (high - low)
    assert np.abs(student - corrected).sum() <= np.abs(student - other).sum() + 1e-9
    assert np.square(student - corrected).sum() <= np.square(student - other).sum() + 1e-9


@given(tables, traces, slots, hn.arrays(np.float64, (3, 4, 2), elements=st.floats(0, 1)))
def test_the_teacher_never_adds_to_the_l2_error_of_a_trace_whose_truth_obeys(
    ranges: Ranges, student: np.ndarray, places: np.ndarray, where: np.ndarray
) -> None:
    low, high = ranges.low[places], ranges.high[places]
    truth = np.clip(low + where * (high - low), low, high)
    after = np.square(ranges.corrected(student, places) - truth).sum(axis=(1, 2))
    assert np.all(after <= np.square(student - truth).sum(axis=(1, 2)))


def test_ranges_travel_as_float32_tables() -> None:
    arrays = infer(*drawn(1, 0)[:2], HOURLY).arrays()
    assert {name: (a.dtype, a.shape) for name, a in arrays.items()} == {
        "low": (np.dtype(np.float32), (WEEK, 1)),
        "high": (np.dtype(np.float32), (WEEK, 1)),
    }
