"""80 % intervals from a sensor's own past errors: right on independent errors, silent without enough of them."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from client.tasks.traffic.metrics import MAX_EARLIER, bounds, coverage, earlier_windows
from client.tasks.traffic.sensor import Sensor
from common.tasks.traffic.vocabulary import HOUR

HOURLY = cast(Sensor, SimpleNamespace(step=HOUR))


def test_intervals_cover_four_fifths_of_independent_errors() -> None:
    rng = np.random.default_rng(0)
    errors, first = rng.normal(size=(900, 6, 2)), np.arange(900)
    assert coverage(HOURLY, errors, first, first >= 300) == pytest.approx(0.8, abs=0.02)


def test_an_interval_uses_only_errors_that_came_before() -> None:
    errors, first = np.zeros((60, 4, 1)), np.arange(60)
    errors[40:] = 1.0  # the first block after the change still has the old interval [0, 0]
    assert coverage(HOURLY, errors, first, (first >= 40) & (first < 44)) == 0.0


def test_without_enough_errors_there_is_no_interval() -> None:
    low, high = bounds(np.zeros((19, 3, 1)))
    assert np.isnan(low).all()
    assert np.isnan(high).all()
    gaps = np.zeros((25, 2, 1))
    gaps[:10, 1] = np.nan
    assert np.isfinite(bounds(gaps)[0][:, 0]).tolist() == [True, False]
    assert np.isnan(coverage(HOURLY, np.zeros((5, 3, 1)), np.arange(5), np.ones(5, bool)))


def test_earlier_windows_are_recent_and_few() -> None:
    first = earlier_windows(HOURLY, np.arange(2000), 2000)
    assert len(first) <= MAX_EARLIER
    assert first.min() >= 2000 - 28 * 24
    assert len(earlier_windows(HOURLY, np.arange(0), 2000)) == 0
