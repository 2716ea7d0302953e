"""Cold-start sensors under pooled properties of similar clients."""

from dataclasses import replace

import numpy as np
import pytest

from client.tasks.traffic.sensor import Sensor, is_cold_start, prepare, with_pooled_property
from common.arrays import Arrays
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.properties import POOLED, satisfaction
from common.wire.messages import TrainRequest
from tests.support.build import learner_of
from tests.support.sensors import HISTORY, HORIZON, MEASURES, road_config, sensor, world

OPTIONS = TrafficOptions(history=HISTORY, horizon=HORIZON)


def build_sensor(days: int, number: int = 0, options: TrafficOptions = OPTIONS) -> Sensor:
    return prepare(sensor(number, days), MEASURES, options, residual=True)


def two_groups(like: Sensor) -> Arrays:
    """Return bounds around the sensor's hourly means and around their negatives."""
    hours = like.slots % 24
    shape = np.array([like.values[hours == hour].mean() for hour in range(24)])
    middles = np.stack([np.tile(-shape, 7), np.tile(shape, 7)])[:, :, None]
    return {POOLED[0]: (middles - 0.7).astype(np.float32), POOLED[1]: (middles + 0.7).astype(np.float32)}


def test_less_than_nine_days_of_training_make_a_cold_start() -> None:
    """Check numbers of days of which a fifth is held out."""
    assert {days: (build_sensor(days).days, is_cold_start(build_sensor(days), OPTIONS)) for days in (7, 10, 12)} == {
        7: (5, True),
        10: (8, True),
        12: (10, False),
    }


def test_days_with_few_readings_do_not_make_up_nine_days() -> None:
    """Check 32 training days with 5 of 24 readings each: 160 readings, as many as of six days."""
    full = sensor(0, 40)
    seen = (np.arange(len(full.values)) % 24 < 5)[:, None]
    sparse = prepare(replace(full, observed=seen), MEASURES, OPTIONS, residual=True)
    assert (sparse.days, is_cold_start(sparse, OPTIONS)) == (6, True)
    assert sparse.calibrated.seen == 1.0, "windows of three readings are complete"


def test_a_cold_start_sensor_takes_the_closest_group_and_keeps_its_own_range() -> None:
    new = build_sensor(7)
    statics = two_groups(new)
    pooled = with_pooled_property(new, statics, OPTIONS)
    assert pooled.pooled
    assert np.isnan(pooled.calibrated.held)
    np.testing.assert_array_equal(pooled.ranges.low, np.minimum(statics[POOLED[0]][1], new.ranges.low))
    np.testing.assert_array_equal(pooled.ranges.high, np.maximum(statics[POOLED[1]][1], new.ranges.high))


def test_later_days_satisfy_the_pooled_property_and_not_the_own_one() -> None:
    tight = TrafficOptions(history=HISTORY, horizon=HORIZON, property="weekday")
    new, full = build_sensor(7, options=tight), sensor(0, 60)
    values, slots = new.scaler.scale(full.values[7 * 24 :]), np.arange(53 * 24) % 168
    shares = [
        satisfaction(each.ranges.excess(values.reshape(53, 24, 1), slots.reshape(53, 24)))["rho_trace"]
        for each in (new, with_pooled_property(new, two_groups(new), tight))
    ]
    assert shares[0] < 0.2
    assert shares[1] > 0.9


@pytest.mark.parametrize("days", [12, 40])
def test_a_sensor_with_nine_days_keeps_its_own_property(days: int) -> None:
    old = build_sensor(days)
    assert with_pooled_property(old, two_groups(old), OPTIONS) is old


def test_the_property_stays_without_a_matching_group_or_with_pooling_off() -> None:
    new = build_sensor(7)
    statics = two_groups(new)
    assert with_pooled_property(new, {}, OPTIONS) is new
    assert with_pooled_property(new, {name: a[:, :3] for name, a in statics.items()}, OPTIONS) is new
    assert with_pooled_property(new, {POOLED[0]: statics[POOLED[0]]}, OPTIONS) is new
    assert with_pooled_property(new, statics, TrafficOptions(history=HISTORY, horizon=HORIZON, newcomer_days=0)) is new


def test_the_learner_trains_and_evaluates_under_the_pooled_property() -> None:
    config = road_config("fedstl", tasks__traffic__property="weekday")
    of = learner_of(config, MEASURES, [sensor(0, 7), sensor(1, 30)])
    statics = two_groups(of.sensors[0])
    plain, pooled = of.batch(TrainRequest(1, "", {})), of.batch(TrainRequest(1, "", {}, statics=statics))
    new = np.arange(len(of.sensors[0].values))
    wider = with_pooled_property(of.sensors[0], statics, config.task_options).ranges
    np.testing.assert_allclose(pooled["low"][new], wider.low[of.sensors[0].slots], rtol=1e-6)
    np.testing.assert_array_equal(pooled["high"][len(new) :], plain["high"][len(new) :])
    assert of.batch(TrainRequest(1, "", {}, shared=statics | of.property(), statics=statics)).keys() == plain.keys()

    truth = [of.baselines("test", statics)[0]["truth_rho_trace"] for statics in ({}, statics)]
    widths = [of.baselines("test", statics)[0]["property_width"] for statics in ({}, statics)]
    assert truth[1] > truth[0]
    assert widths[1] > widths[0]
    assert (
        of.evaluate(world(config), statics, "test")[0]["rho_trace"]
        >= of.evaluate(world(config), {}, "test")[0]["rho_trace"]
    )
    assert int(of.property()["days"][0]) == 5
