"""Gaps, against slow loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.tasks.traffic.data.readings import fill, in_runs

NAN = float("nan")


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 6))
def test_runs(flags: list[bool], least: int) -> None:
    text = "".join("x" if flag else "." for flag in flags)
    runs = [len(run) >= least for run in text.split(".") for _ in run]
    assert in_runs(np.array(flags, bool), least)[np.array(flags, bool)].tolist() == runs
    assert not in_runs(np.array(flags, bool), least)[~np.array(flags, bool)].any()


def test_short_gaps_are_linear_and_ends_stay() -> None:
    values = np.array([[NAN, 1], [1, NAN], [NAN, NAN], [4, NAN], [NAN, 5]])
    filled = fill(values, 0, 3600)
    assert filled.values.tolist() == [[1, 1], [1, 2], [2.5, 3], [4, 4], [4, 5]]
    assert (filled.observed == ~np.isnan(values)).all()
    assert filled.by_week == 0


@pytest.mark.parametrize("step", [30, 60, 1440])
def test_long_gaps_take_the_mean_of_the_same_time_of_earlier_weeks(step: int) -> None:
    """A gap of a day exactly is linear; a longer one is not, except at times of the week that no reading has."""
    day, week = 1440 // step, 7 * 1440 // step
    rng = np.random.default_rng(1)
    values = rng.random((3 * week, 1))
    values[week : week + day] = NAN
    values[-2 * day - 1 : -1] = NAN
    values[week - 1 - day :: week] = NAN
    filled = fill(values, 5 * 60 * step, 60 * step)
    known = np.flatnonzero(~np.isnan(values[:, 0]))
    straight = np.interp(np.arange(len(values)), known, values[known, 0])
    for k in range(len(values)):
        same = values[k % week : k : week, 0]
        usual = not np.isnan(same).all() and 3 * week - 2 * day - 1 <= k
        expected = np.nanmean(same) if usual else straight[k]
        assert filled.values[k, 0] == pytest.approx(values[k, 0] if k in known else expected, rel=1e-12)
    assert filled.by_week == 2 * day - 1
    assert np.isnan(values).any(), "what is handed in stays as it is"


@given(st.lists(st.booleans(), min_size=40, max_size=40), st.integers(1, 39))
def test_nothing_before_a_reading_knows_what_comes_after_it(known: list[bool], last: int) -> None:
    """A week of seven readings, so that gaps of two are filled with means of earlier weeks."""
    known[0] = known[last] = True
    values = np.where(known, np.random.default_rng(0).random(40), NAN)[:, None]
    later = np.where(np.arange(40)[:, None] > last, values + 100, values)
    before, after = (fill(each, 0, 86400).values[: last + 1] for each in (values, later))
    np.testing.assert_array_equal(before, after)
