"""Histories are repaired by the sensor's own property; readings that forecasts are compared with never are."""

import numpy as np
import pytest

from client.tasks.traffic.data.series import Series
from client.tasks.traffic.inference import forecast
from client.tasks.traffic.learner import TrafficLearner
from common.models import parameters
from common.options import Scalar
from tests.support.build import learner_of
from tests.support.hourly import HOURLY
from tests.support.weekly_sensor import START, Change, Floats, unchanged, week, weekly_config

WEEKS = 12
END = WEEKS * 168


def busy_days(values: Floats) -> Floats:
    """Return weekly readings whose busy spells last for days, so that yesterday says something on tomorrow."""
    rng, level = np.random.default_rng(3), np.zeros(END)
    for t in range(1, END):
        level[t] = 0.97 * level[t - 1] + 0.03 * rng.normal()
    return np.asarray(values * (1 + level))


def made(change: Change = unchanged, *, observed: bool = True, **options: Scalar) -> TrafficLearner:
    values = busy_days(np.resize(week() + 40, END))
    sound = values.copy()
    change(values)
    seen = np.ones((END, 1), bool) if observed else (values == sound)[:, None]
    found: TrafficLearner = learner_of(weekly_config(**options), HOURLY, [Series("a", START, values[:, None], seen)])
    return found


def dead_for_a_day(values: Floats) -> None:
    values[-72:-48] = 0


def error_after(learner: TrafficLearner, truth: TrafficLearner) -> float:
    """Return the MSE of the untrained default, profile and ridge, on the two days after the dead one."""
    [sensor], [sound] = learner.sensors, truth.sensors
    first = np.arange(END - 48, END - 23)
    made_ = learner.forecasts(parameters(learner.module), sensor, first)
    return sound.error(made_, first[:, None] + np.arange(24))


def test_a_dead_day_costs_little_after_repair_and_much_without() -> None:
    truth = made(tasks__traffic__repair="none")
    sound = error_after(truth, truth)
    repaired = error_after(made(dead_for_a_day), truth)
    broken = error_after(made(dead_for_a_day, tasks__traffic__repair="none"), truth)
    assert repaired <= 1.05 * sound
    assert broken >= 2 * sound


def test_only_histories_change() -> None:
    [sensor], [sound] = made(dead_for_a_day).sensors, made().sensors
    dead = np.zeros((END, 1), bool)
    dead[END - 72 : END - 48] = True
    assert sensor.repaired[dead].mean() > 0.8
    np.testing.assert_array_equal(sensor.repaired[~dead], sound.repaired[~dead])
    np.testing.assert_array_equal(sensor.inputs[sensor.repaired], sensor.profile[sensor.repaired])
    np.testing.assert_array_equal(sensor.scaler.unscale(sensor.values)[END - 72 : END - 48], np.zeros((24, 1)).round(9))


def test_filled_gaps_are_repaired_in_training_too() -> None:
    def outage(values: Floats) -> None:
        values[1000:1024] = 0

    [sensor] = made(outage, observed=False).sensors
    assert sensor.past > 1024
    assert sensor.repaired[1000:1024].mean() > 0.8
    assert not sensor.repaired[sensor.usable].any(), "all readings that the property is inferred from satisfy it"


@pytest.mark.parametrize(
    ("options", "repairs"),
    [
        ({}, True),
        ({"tasks__traffic__repair": "property"}, True),
        ({"tasks__traffic__repair": "none"}, False),
        ({"model": "paper"}, False),
        ({"model": "paper", "tasks__traffic__repair": "property"}, True),
        ({"tasks__traffic__validation_share": 0.4, "tasks__traffic__test_share": 0.45}, False),
    ],
)
def test_repair_is_for_the_default_model_and_for_two_weeks_of_readings(
    options: dict[str, Scalar], repairs: bool
) -> None:
    [sensor] = made(dead_for_a_day, **options).sensors
    assert sensor.repaired.any() == repairs


def test_a_forecast_reads_the_profile_for_a_dead_day_and_counts_it() -> None:
    sound, broken = made(), made(dead_for_a_day)
    results = [forecast(one, one.sensors[0], parameters(one.module), 24, {}) for one in (sound, broken)]
    assert [result.fault for result in results] == ["", ""]
    assert 20 <= results[1].repaired - results[0].repaired <= 24
    np.testing.assert_allclose(results[1].student, results[0].student, rtol=0.25)
    assert results[1].low.min() > 0, "its property does not allow dead hours"


def test_readings_of_more_than_two_weeks_ago_change_the_property() -> None:
    def twice(values: Floats) -> None:
        values[-24 * 17 : -24] *= 2

    grown = made(twice, tasks__traffic__validation_share=0.15, tasks__traffic__test_share=0.1)
    [sensor] = grown.sensors
    result = forecast(grown, sensor, parameters(grown.module), 24, {})
    early = np.arange(END) < END - 24 * 14
    assert result.fault == ""
    assert sensor.repaired[early].any()
    np.testing.assert_array_equal(result.basis.observed, ~(sensor.repaired & ~early[:, None]))
    assert result.basis.ranges.high.max() > sensor.ranges.high.max()
