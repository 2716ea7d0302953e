"""Coverage of calibrated ranges on generated sensors."""

from dataclasses import replace

import numpy as np

from client.tasks.traffic.data.generator import demo_series
from client.tasks.traffic.data.series import Sensors
from common.tasks.traffic.vocabulary import demo_variables
from studies.traffic.coverage import measure, origins
from studies.traffic.sets import TEN

MONTHLY = replace(TEN, days=60, back=28)


def generated() -> Sensors:
    return Sensors(demo_series(0, 3, 0), demo_variables())


def test_origins_reach_back_as_far_as_the_data_and_test_the_days_after_a_history() -> None:
    whole = generated()
    found = list(origins(MONTHLY, whole, 14))
    lengths = {len(series.values) for ended, _ in found for series in ended.units}
    assert (len(found), lengths) == (3, {24 * (14 + 28)})
    assert len(list(origins(MONTHLY, whole, 0))) == 2


def test_ranges_hold_on_about_nine_windows_of_ten() -> None:
    whole = generated()
    for history in (9, 28):
        rows = [
            measure(series, ended, options)
            for ended, options in origins(MONTHLY, whole, history)
            for series in ended.units
        ]
        windows, readings, width = np.mean(rows, axis=0)
        assert 0.8 < windows <= readings < 1
        assert 0 < width < 4
