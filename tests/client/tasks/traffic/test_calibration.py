"""Adaptive conformal ranges: ranks, levels, shares of new windows, few and incomplete windows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.tasks.traffic.calibration import (
    RATE,
    Calibrated,
    WindowedReadings,
    adapt,
    calibrate,
    fewest_windows,
    threshold,
)
from common.tasks.traffic.properties import groups_of

WEEK = 168
HOURLY = groups_of("hourly", WEEK)


def sample(days: int, seed: int, *, past: int = 0, scale: float = 1.0, observed: float = 1.0) -> WindowedReadings:
    """Return hours of a level per hour of the week, a random level per day, and noise; all are the past by default."""
    rng = np.random.default_rng(seed)
    hours = np.arange(days * 24)
    level = np.sin(2 * np.pi * hours / 24) + (hours % WEEK >= 120)
    values = level + scale * (np.repeat(rng.normal(0, 0.3, days), 24) + rng.normal(0, 0.2, days * 24))
    seen = rng.random(days * 24) < observed
    return WindowedReadings(values[:, None], hours % WEEK, seen, 24 * past or 24 * days, hours // 24, 24)


def share(calibrated: Calibrated, readings: WindowedReadings, first: int = 0) -> float:
    """Return the share of days from the `first` that satisfy the ranges at their margins."""
    at = slice(24 * first, None)
    margins = calibrated.margins[at] if first else 0.0
    distance = calibrated.ranges.excess(readings.values[at], readings.rows[at], margins)
    return float((distance.reshape(-1, 24).max(axis=1) <= 0).mean())


def test_ranks_by_hand() -> None:
    scores = [1.0, 2.0, 3.0, 5.0]
    assert threshold(scores, 0.8) == 5.0, "the fourth of four"
    assert threshold(scores, 0.7) == 4.0, "between the third and the fourth"
    assert threshold(scores, 0.1) == 1.0
    assert threshold(scores, 0.96) == pytest.approx(5 * 4.8 / 4), "too few scores: extrapolated"
    assert [fewest_windows(coverage) for coverage in (0.5, 0.8, 0.9, 0.95)] == [1, 4, 9, 19]


def test_the_level_by_hand() -> None:
    """Check four scores at a coverage of 0.5, whose level moves from the second window on."""
    found = adapt([1.0, 3.0, 0.0, 2.0], 0.5)
    assert found[:2].tolist() == [np.inf, 1.0]
    assert found[2] == threshold([1.0, 3.0], 0.5 + RATE / 2)
    assert found[3] == threshold([0.0, 1.0, 3.0], 0.5)
    assert found[4] == threshold([0.0, 1.0, 2.0, 3.0], 0.5 + (RATE / 2 if found[3] < 2.0 else -RATE / 2))


@given(st.lists(st.floats(0, 1), min_size=200, max_size=300), st.sampled_from([0.8, 0.9]))
def test_the_share_of_violations_tends_to_the_stated_one_for_any_scores(scores: list[float], coverage: float) -> None:
    """Check the bound of Gibbs and Candès, (level range + γ)/(γT), with room for levels beyond the largest score."""
    drifting = np.array(scores) + np.linspace(0, 5, len(scores))
    found, skip = adapt(drifting, coverage), fewest_windows(coverage)
    violated = float(np.mean(drifting[skip:] > found[skip:-1]))
    assert violated <= 1 - coverage + (1 + RATE) / (RATE * (len(scores) - skip))


@pytest.mark.parametrize("coverage", [0.8, 0.9])
@pytest.mark.parametrize("days", [9, 14, 28, 84])
def test_new_days_of_the_same_distribution_satisfy_the_ranges_as_often_as_stated(days: int, coverage: float) -> None:
    shares = []
    for seed in range(40):
        found, later = calibrate(sample(days, seed), HOURLY, coverage), sample(70, 1000 + seed)
        shares.append(share(found, later))
        assert (found.windows, found.seen, found.weight) == (days, 1.0, coverage)
    assert coverage - (0.04 if days >= 28 else 0.05) <= np.mean(shares) <= coverage + 0.04


def test_margins_follow_a_change_after_the_past_and_use_no_later_day() -> None:
    """Check sixty days, after which readings vary three times as much."""
    calm, wild = sample(60, 0), sample(120, 1, scale=3.0)
    values = np.concatenate([calm.values, wild.values[24 * 60 :]])
    readings = WindowedReadings(values, wild.rows, np.ones(len(values), bool), 24 * 60, wild.window, 24)
    found = calibrate(readings, HOURLY, 0.9)
    frozen = Calibrated(found.ranges, np.zeros(len(values)))
    assert share(frozen, readings, 60) < 0.4
    assert 0.8 <= share(found, readings, 60) <= 0.95
    assert not found.margins[: 24 * 61].any(), "the first later day is tested by the past alone"
    cut = WindowedReadings(
        values[: 24 * 80], wild.rows[: 24 * 80], np.ones(24 * 80, bool), 24 * 60, wild.window[: 24 * 80], 24
    )
    np.testing.assert_allclose(calibrate(cut, HOURLY, 0.9).margins, found.margins[: 24 * 80])


def test_too_few_days_widen_the_ranges() -> None:
    found, exact = calibrate(sample(5, 3), HOURLY, 0.9), calibrate(sample(5, 3), HOURLY, 5 / 6)
    assert (found.windows, found.held) == (5, 1.0)
    assert found.ranges.width == pytest.approx(exact.ranges.width * 5.4 / 5), "rank 5.4 of 5 against rank 5"


def test_complete_days_are_tested_if_they_suffice() -> None:
    """Check days of which 95 and 60 % of the readings were observed."""
    many, few = (calibrate(sample(60, 0, observed=part), HOURLY, 0.9) for part in (0.95, 0.6))
    assert (many.seen, 9 <= many.windows < 40) == (1.0, True)
    assert few.windows == 60
    assert few.seen == pytest.approx(0.6, abs=0.03)


def test_one_sided_ranges_hold_on_their_lower_side() -> None:
    shares, later = [], sample(200, 99)
    for seed in range(20):
        ranges = calibrate(sample(40, seed), HOURLY, 0.9, one_sided=True).ranges
        shares.append((later.values >= ranges.low[later.rows]).reshape(-1, 24).all(axis=1).mean())
    assert 0.86 <= np.mean(shares) <= 0.96


def test_constant_readings_have_ranges_without_width() -> None:
    readings = WindowedReadings(
        np.ones((240, 1)), np.arange(240) % WEEK, np.ones(240, bool), 240, np.arange(240) // 24, 24
    )
    found = calibrate(readings, HOURLY, 0.9)
    assert (found.ranges.width, found.held) == (0.0, 1.0)
