"""Share of true windows that satisfy calibrated ranges, over rolling origins and short histories.

`python -m studies.traffic.coverage DATA` prints a table. DATA is the folder of the data sets.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from client.tasks.traffic.data.series import Sensors, Series, split_series
from client.tasks.traffic.metrics import excess
from client.tasks.traffic.sensor import prepare
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import DAY
from studies.traffic.data import cut_end, read
from studies.traffic.sets import BOROONDARA, TEN, Setting

HISTORIES = (0, 5, 7, 9, 14, 28)
"""Numbers of days from which the ranges are inferred; 0 is the training part of the set's protocol."""

LONGEST = 37
"""Largest number of test days after a short history."""


def origins(setting: Setting, whole: Sensors, history: int) -> Iterator[tuple[Sensors, TrafficOptions]]:
    """Yield the data and the split of each origin, `setting.back` days apart.

    Args:
        setting: The set and its protocol.
        whole: All of its data.
        history: Number of days before the test part; 0 for the protocol's own split, at its own origins.
    """
    length = max(len(series.values) for series in whole.units) * whole.vocabulary.step_seconds // DAY
    test = min(LONGEST, setting.back)
    days = history + test if history else setting.days
    split = {"validation_share": 0.0, "test_share": test / days} if history else {}
    count = (length - days) // setting.back + 1 if days else setting.origins
    for k in range(count):
        ended = cut_end(whole, k * setting.back, days)
        yield ended, TrafficOptions.model_validate({"ridge": "none", **split})


def measure(series: Series, dataset: Sensors, options: TrafficOptions) -> list[float]:
    """Return the shares of true windows and readings inside, and the width; nothing without a window."""
    sensor = prepare(series, dataset.vocabulary, options, residual=True)
    begin = split_series(series, options, sensor.step).validation_end
    first = np.arange(begin, len(sensor.values) - options.horizon + 1)
    first = first[sensor.observed[first[:, None] + np.arange(options.horizon)].all(axis=(1, 2))]
    if not len(first):
        return []
    truth, places = sensor.targets(first, options.horizon)
    distance = excess(sensor, truth, first).max(axis=2)
    low, high = sensor.ranges.limits(sensor.clock[places], sensor.margins(first))
    return [float((distance.max(axis=1) <= 0).mean()), float((distance <= 0).mean()), float((high - low).mean())]


def main(data: Path) -> None:
    """Print the coverage of both development sets."""
    print("set, days, origins, sensors, windows, readings, width")
    with TemporaryDirectory() as cache:
        for setting in (BOROONDARA, TEN):
            whole = read(replace(setting, days=0), data, Path(cache))
            for history in HISTORIES:
                found = [
                    [row for series in ended.units if (row := measure(series, ended, options))]
                    for ended, options in origins(setting, whole, history)
                ]
                means = np.mean([np.mean(rows, axis=0) for rows in found if rows], axis=0)
                shares = f"{means[0]:.1%}, {means[1]:.2%}, {means[2]:.2f}"
                print(f"{setting.key}, {history or 'all'}, {len(found)}, {len(whole.units)}, {shares}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
