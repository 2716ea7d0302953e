"""From a finished model to what a sensor will read next: a sensor whose weeks are all alike, so that the future is known."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from client.inference.choose_model import fit_model, has_own_parameters
from client.tasks.traffic.cold_start import is_cold_start
from client.tasks.traffic.data.series import Series
from client.tasks.traffic.inference import faulty, forecast, held_later
from client.tasks.traffic.learner import TrafficLearner
from common.arrays import Arrays, add_prefix
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError, DataError
from common.models import parameters
from common.options import Scalar
from common.tasks.traffic.ranges import POOLED
from common.tasks.traffic.vocabulary import SensorVariables
from tests.support.build import learner_of

Floats = NDArray[np.float64]
HOURLY = SensorVariables(variables=("volume",))
WEEKS = 6
START = np.datetime64("2024-01-01T00:00", "m")
"""A Monday."""


def pattern() -> Floats:
    """Return a week of hourly volumes: 0 before 05:00, then a hump, lower at weekends, no equal hours."""
    hour, day = np.arange(168) % 24, np.arange(168) // 24
    return np.where(hour < 5, 0.0, (100 + 30 * hour - hour**2) * np.where(day < 5, 1.0, 0.5))


def series(values: Floats) -> Series:
    return Series("a", START, values[:, None], np.ones((len(values), 1), bool))


def config(method: str = "fedavg", **options: Scalar) -> RunConfig:
    small: dict[str, Scalar] = {"method": method, "task": "traffic", "run-id": "toy", "tasks.traffic.hidden": 3}
    return parse(small | {key.replace("__", "."): value for key, value in options.items()})


def learner(of: RunConfig, values: Floats) -> TrafficLearner:
    return learner_of(of, HOURLY, [series(values)])


Change = Callable[[Floats], None]


def changed(change: Change, hours: int = WEEKS * 168) -> Floats:
    values = np.resize(pattern(), hours)
    change(values)
    return values


def nothing(values: Floats) -> None: ...


def test_the_untrained_default_forecasts_the_profile_at_the_right_hours_and_in_the_data_s_own_units() -> None:
    own, hours = config(), WEEKS * 168 + 31
    made = learner(own, changed(nothing, hours))
    found = forecast(made, made.sensors[0], parameters(made.module), 24, {})
    truth = np.resize(pattern(), hours + 24)[hours:, None]
    assert found.fault == ""
    assert found.times[0] == np.datetime64("2024-02-13T07:00")
    np.testing.assert_array_equal(np.diff(found.times), np.timedelta64(1, "h"))
    for forecasts in (found.student, found.corrected, found.profile):
        np.testing.assert_allclose(forecasts, truth, atol=1e-3)
    assert (found.low <= truth + 1e-9).all()
    assert (truth <= found.high + 1e-9).all()


def test_the_teacher_moves_what_breaks_the_property_to_its_nearest_bound() -> None:
    own = config()
    made = learner(own, changed(nothing))
    too_much = {**parameters(made.module), "linear.bias": np.full(24, 10.0, np.float32)}
    too_much["linear.bias"][3:] = 0
    found = forecast(made, made.sensors[0], too_much, 24, {})
    std = float(made.sensors[0].scaler.std[0])
    np.testing.assert_allclose(found.student[:3] - found.profile[:3], 10 * std, rtol=1e-5)
    np.testing.assert_array_equal(found.corrected[:3], found.high[:3])
    assert found.marked[:3].all()


def test_a_shorter_horizon_is_a_cut_and_a_longer_one_refused() -> None:
    own = config()
    made = learner(own, changed(nothing))
    model = {**parameters(made.module), "linear.bias": np.arange(24, dtype=np.float32)}
    whole, cut = (forecast(made, made.sensors[0], model, steps, {}) for steps in (24, 5))
    np.testing.assert_array_equal(cut.student, whole.student[:5])
    np.testing.assert_array_equal(cut.times, whole.times[:5])
    with pytest.raises(ConfigError, match="forecasts 24 steps, not 25; set --horizon to 24 at most"):
        forecast(made, made.sensors[0], model, 25, {})


def test_the_paper_s_model_forecasts_readings_themselves() -> None:
    own = config(model="paper")
    made = learner(own, changed(nothing))
    silent = {name: np.zeros_like(a) for name, a in parameters(made.module).items()}
    found = forecast(made, made.sensors[0], silent, 24, {})
    np.testing.assert_allclose(found.student, float(made.sensors[0].scaler.mean[0]), rtol=1e-6)


def test_too_little_history_is_told() -> None:
    own = config()
    made = learner(own, changed(nothing, 119))
    with pytest.raises(DataError, match="119 readings are fewer than the 120"):
        forecast(made, made.sensors[0], parameters(made.module), 24, {})


def dead(values: Floats) -> None:
    values[-15:] = 0


def stuck(values: Floats) -> None:
    values[-7:] = values[-7]


def wild(values: Floats) -> None:
    values[-6:] *= 4


def shortly_wild(values: Floats) -> None:
    values[-5:] *= 4


@pytest.mark.parametrize(
    ("change", "hours", "told"),
    [
        (dead, WEEKS * 168, "its last 15 readings are all 0: the sensor seems dead or stuck"),
        (stuck, WEEKS * 168, "its last 7 readings are all"),
        (wild, WEEKS * 168 - 6, "its last 6 readings all violate"),
        (shortly_wild, WEEKS * 168 - 6, ""),
        (nothing, WEEKS * 168 + 5, ""),  # ends on the five hours without a vehicle that every night has
    ],
)
def test_a_faulty_end_is_told_and_the_profile_takes_the_forecast_s_place(change: Change, hours: int, told: str) -> None:
    own = config()
    made = learner(own, changed(change, hours))
    model = {**parameters(made.module), "linear.bias": np.full(24, 0.01, np.float32)}
    sensor = made.sensors[0]
    found = forecast(made, sensor, model, 24, {})
    assert faulty(sensor, own.task_options) == found.fault
    assert found.fault.startswith(told)
    assert bool(found.fault) == bool(told)
    assert np.array_equal(found.student, found.profile) == bool(told)


def test_a_client_s_model_is_that_of_the_cluster_that_suits_it_best() -> None:
    own = config("ifca")
    made = learner(own, changed(nothing))
    good = parameters(made.module)  # the profile, right already: a round of training leaves it as it is
    bad = {**good, "linear.bias": np.full(24, 5.0, np.float32)}
    chosen = fit_model(own, made, {**add_prefix("0", bad), **add_prefix("1", good)}, {})
    np.testing.assert_allclose(chosen["linear.bias"], 0, atol=1e-6)
    assert chosen.keys() == good.keys()


def test_layers_that_stay_with_clients_are_made_anew_and_only_they() -> None:
    own = config("fedrep", model="paper", algorithm__fedrep__local_steps=2, algorithm__fedrep__head_steps=1)
    made = learner(own, changed(nothing))
    trained = parameters(made.module)
    chosen = fit_model(own, made, trained, {})
    moved = {name for name, a in chosen.items() if not np.array_equal(a, trained[name])}
    assert moved == {"head.weight", "head.bias"}
    assert fit_model(config(model="paper"), made, trained, {}) is not None


@pytest.mark.parametrize(
    ("method", "stays"), [("fedavg", False), ("fedrep", True), ("ditto", True), ("ifca", True), ("fedstl", True)]
)
def test_which_methods_leave_something_with_the_client(method: str, stays: bool) -> None:
    names: Arrays = {"0/head.weight": np.zeros(1), "0/lower.weight": np.zeros(1)}
    assert has_own_parameters(config(method), names) == stays


def test_how_many_later_days_obey() -> None:
    def one_day_too_many(values: Floats) -> None:
        values[-40] *= 9  # on the last day but one

    own = config()
    sensor = learner(own, changed(one_day_too_many)).sensors[0]
    days = len(sensor.values) // 24 - int(np.floor(len(sensor.values) * 0.8 / 24 + 0.5))
    share, count = held_later(sensor)
    assert (share, count) == (1 - 1 / days, days)
    unseen = replace(sensor.series, observed=sensor.series.observed.copy())
    unseen.observed[-40] = False
    assert held_later(replace(sensor, series=unseen)) == (1.0, days - 1), "a day that lacks a reading is no whole day"


def test_days_that_nobody_saw_did_not_obey() -> None:
    """Of the eight days after training six are missing and two doubled, as in a week of outage."""

    def doubled(values: Floats) -> None:
        values[-48:] *= 2

    sensor = learner(config(), changed(doubled)).sensors[0]
    observed = sensor.series.observed.copy()
    observed[sensor.past : -48] = False
    silent = replace(sensor, series=replace(sensor.series, observed=observed))
    assert held_later(silent) == (0.0, 2)
    observed[-48::24] = False
    share, count = held_later(silent)
    assert np.isnan(share)
    assert count == 0


def test_profile_and_property_are_learnt_from_all_readings_and_the_units_stay() -> None:
    """In the last ten days, which training holds out, everything is doubled."""

    def doubled(values: Floats) -> None:
        values[-10 * 24 :] *= 2

    own = config(tasks__traffic__coverage=0.5)
    made = learner(own, changed(doubled))
    sensor = made.sensors[0]
    found = forecast(made, sensor, parameters(made.module), 24, {})
    readings = np.resize(pattern(), WEEKS * 168)
    doubled(readings)
    next_day = readings.reshape(WEEKS, 7, 24)[:, 0]  # the coming day is a Monday
    np.testing.assert_allclose(found.profile[:, 0], next_day.mean(0), atol=1e-3)
    np.testing.assert_array_equal(found.basis.scaler.mean, sensor.scaler.mean)
    assert (found.high[6:, 0] >= next_day.max(0)[6:]).all()
    assert found.basis.held > 0
    assert held_later(found.basis)[1] == 0
    assert held_later(sensor)[1] > 0


def test_a_faulty_end_teaches_nothing() -> None:
    own = config()
    made = learner(own, changed(wild, WEEKS * 168 - 6))
    found = forecast(made, made.sensors[0], parameters(made.module), 24, {})
    assert found.fault
    assert found.basis is made.sensors[0]


def test_a_newcomer_is_forecast_under_the_property_that_it_adopts() -> None:
    own = config()
    made = learner(own, changed(nothing, 9 * 24))
    told = {name: np.full((1, 168, 1), end, np.float32) for name, end in zip(POOLED, (-7, 7), strict=True)}
    found = forecast(made, made.sensors[0], parameters(made.module), 24, told)
    assert found.basis.pooled
    np.testing.assert_allclose(found.high, made.sensors[0].scaler.unscale(np.full((24, 1), 7.0)))
    grown = learner(own, changed(nothing, 15 * 24))  # its training part alone would still be a newcomer's
    assert is_cold_start(grown.sensors[0], own.task_options)
    assert not forecast(grown, grown.sensors[0], parameters(made.module), 24, told).basis.pooled
