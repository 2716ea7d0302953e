"""Faults at the end of a sensor's readings, and how well its later days satisfy its property."""

from dataclasses import replace

import numpy as np
import pytest

from client.tasks.traffic.inference import faulty, forecast, held_later
from common.models import parameters
from tests.support.weekly_sensor import WEEKS, Change, Floats, unchanged, weekly_learner


def dead(values: Floats) -> None:
    values[-15:] = 0


def stuck(values: Floats) -> None:
    values[-7:] = values[-7]


def wild(values: Floats) -> None:
    values[-6:] *= 4


def shortly_wild(values: Floats) -> None:
    values[-5:] *= 4


@pytest.mark.parametrize(
    ("change", "hours", "fault"),
    [
        (dead, WEEKS * 168, "its last 15 readings are all 0: the sensor seems dead or stuck"),
        (stuck, WEEKS * 168, "its last 7 readings are all"),
        (wild, WEEKS * 168 - 6, "its last 6 readings all violate"),
        (shortly_wild, WEEKS * 168 - 6, ""),
        (unchanged, WEEKS * 168 + 5, ""),  # ends on the five hours of every night without a vehicle
    ],
)
def test_a_faulty_end_is_reported_and_the_profile_replaces_the_forecast(change: Change, hours: int, fault: str) -> None:
    made = weekly_learner(change=change, hours=hours)
    model = {**parameters(made.module), "linear.bias": np.full(24, 0.01, np.float32)}
    sensor = made.sensors[0]
    result = forecast(made, sensor, model, 24, {})
    assert faulty(sensor, made.options) == result.fault
    assert result.fault.startswith(fault)
    assert bool(result.fault) == bool(fault) == (result.basis is sensor)
    assert np.array_equal(result.student, result.profile) == bool(fault)


def test_the_share_of_later_days_that_satisfy_the_property() -> None:
    def one_excess(values: Floats) -> None:
        values[-40] *= 9  # on the last day but one

    sensor = weekly_learner(change=one_excess).sensors[0]
    days = len(sensor.values) // 24 - int(np.floor(len(sensor.values) * 0.8 / 24 + 0.5))
    share, count = held_later(sensor)
    assert (share, count) == (1 - 1 / days, days)
    gap = replace(sensor.series, observed=sensor.series.observed.copy())
    gap.observed[-40] = False
    assert held_later(replace(sensor, series=gap)) == (1.0, days - 1), "a day that lacks a reading is no whole day"


def test_unobserved_days_satisfy_nothing() -> None:
    """Of the eight days after training six are missing and two doubled, as in a week of outage."""

    def double_two_days(values: Floats) -> None:
        values[-48:] *= 2

    sensor = weekly_learner(change=double_two_days).sensors[0]
    observed = sensor.series.observed.copy()
    observed[sensor.past : -48] = False
    silent = replace(sensor, series=replace(sensor.series, observed=observed))
    assert held_later(silent) == (0.0, 2)
    observed[-48::24] = False
    share, count = held_later(silent)
    assert np.isnan(share)
    assert count == 0
