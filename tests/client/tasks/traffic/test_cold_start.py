"""A sensor with little past under a property of others like it."""

from dataclasses import replace

import numpy as np
import pytest

from client.tasks.traffic.cold_start import adopted, is_new
from client.tasks.traffic.prepare import Sensor, prepare
from common.arrays import Arrays
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.ranges import POOLED, obedience
from common.wire.messages import TrainRequest
from tests.support.build import learner_of
from tests.support.sensors import HISTORY, HORIZON, MEASURES, road_config, sensor, world

OPTIONS = TrafficOptions(history=HISTORY, horizon=HORIZON)


def one(days: int, number: int = 0, options: TrafficOptions = OPTIONS) -> Sensor:
    return prepare(sensor(number, days), MEASURES, options, residual=True)


def two_groups(like: Sensor) -> Arrays:
    """Bounds around the sensor's own readings by the hour, and around the opposite of them."""
    hours = like.slots % 24
    shape = np.array([like.values[hours == hour].mean() for hour in range(24)])
    middles = np.stack([np.tile(-shape, 7), np.tile(shape, 7)])[:, :, None]
    return {POOLED[0]: (middles - 0.7).astype(np.float32), POOLED[1]: (middles + 0.7).astype(np.float32)}


def test_less_than_two_weeks_of_training_make_a_newcomer() -> None:
    """The shares hold out a fifth."""
    assert {days: (one(days).days, is_new(one(days), OPTIONS)) for days in (7, 16, 18)} == {
        7: (5, True),
        16: (13, True),
        18: (14, False),
    }


def test_days_with_few_readings_do_not_make_up_two_weeks() -> None:
    """Of 40 days 32 are trained on, each with 5 of 24 readings: 160 of them, six days' worth."""
    full = sensor(0, 40)
    seen = (np.arange(len(full.values)) % 24 < 5)[:, None]
    sparse = prepare(replace(full, observed=seen), MEASURES, OPTIONS, residual=True)
    assert (sparse.days, is_new(sparse, OPTIONS)) == (6, True)
    assert np.isnan(sparse.held)


def test_a_newcomer_takes_the_group_that_runs_like_its_readings_and_keeps_what_it_saw() -> None:
    new = one(7)
    told = two_groups(new)
    found = adopted(new, told, OPTIONS)
    assert found.pooled
    assert np.isnan(found.held)
    np.testing.assert_array_equal(found.ranges.low, np.minimum(told[POOLED[0]][1], new.ranges.low))
    np.testing.assert_array_equal(found.ranges.high, np.maximum(told[POOLED[1]][1], new.ranges.high))
    assert not found.ranges.excess(found.values[found.known], found.slots[found.known]).any()


def test_on_days_to_come_it_holds_where_the_newcomer_s_own_does_not() -> None:
    new, full = one(7), sensor(0, 60)
    values, slots = new.scaler.scale(full.values[7 * 24 :]), np.arange(53 * 24) % 168
    shares = [
        obedience(each.ranges.excess(values.reshape(53, 24, 1), slots.reshape(53, 24)))["rho_trace"]
        for each in (new, adopted(new, two_groups(new), OPTIONS))
    ]
    assert shares[0] < 0.2
    assert shares[1] > 0.9


@pytest.mark.parametrize("days", [18, 40])
def test_who_has_two_weeks_keeps_its_own(days: int) -> None:
    old = one(days)
    assert adopted(old, two_groups(old), OPTIONS) is old


def test_nothing_is_adopted_where_nothing_fits_or_nobody_asks() -> None:
    new = one(7)
    told = two_groups(new)
    assert adopted(new, {}, OPTIONS) is new
    assert adopted(new, {name: a[:, :3] for name, a in told.items()}, OPTIONS) is new
    assert adopted(new, {POOLED[0]: told[POOLED[0]]}, OPTIONS) is new
    assert adopted(new, told, TrafficOptions(history=HISTORY, horizon=HORIZON, newcomer_days=0)) is new


def test_the_learner_trains_and_measures_under_what_it_adopts() -> None:
    config = road_config("fedstl")
    of = learner_of(config, MEASURES, [sensor(0, 7), sensor(1, 30)])
    told = two_groups(of.sensors[0])
    own, pooled = of.batch(TrainRequest(1, "", {})), of.batch(TrainRequest(1, "", {}, statics=told))
    new = np.arange(len(of.sensors[0].values))
    wider = adopted(of.sensors[0], told, config.task_options).ranges
    np.testing.assert_allclose(pooled["low"][new], wider.low[of.sensors[0].slots], rtol=1e-6)
    np.testing.assert_array_equal(pooled["high"][len(new) :], own["high"][len(new) :])
    assert of.batch(TrainRequest(1, "", {}, shared=told | of.property(), statics=told)).keys() == own.keys()

    truth = [of.baselines("test", statics)[0]["truth_rho_trace"] for statics in ({}, told)]
    widths = [of.baselines("test", statics)[0]["property_width"] for statics in ({}, told)]
    assert truth[1] > truth[0]
    assert widths[1] > widths[0]
    assert (
        of.evaluate(world(config), told, "test")[0]["rho_trace"]
        >= of.evaluate(world(config), {}, "test")[0]["rho_trace"]
    )
    assert int(of.property()["days"][0]) == 5
