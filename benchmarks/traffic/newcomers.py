"""What a property is worth that newcomers take from members: their own holds on few of the days to come.

Some sensors have but the last days before the test; the others have all of theirs, and their properties are pooled in groups
as FedSTL's server does. Newcomers never trained: only properties are compared, no forecast.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.traffic.sets import Setting
from client.data.traffic.series import Dataset, Series
from client.tasks.traffic_newcomer import adopted
from client.tasks.traffic_sensor import Sensor, prepare
from common.tasks.traffic import TrafficOptions
from common.tasks.traffic_ranges import Ranges, obedience
from server.aggregation.neighbours import neighbourhoods

DAYS = (5, 7)
APART = 25
"""Sensors that are newcomers at once; of a smaller set, each in turn is the only one."""


def newcomers(setting: Setting, folder: Path, cache: Path) -> list[list[str]]:
    """A row a property and number of days: the newcomers' own and the pooled one's share of true days, and their widths."""
    dataset = setting.dataset(folder, cache)
    rows = []
    for kind, title in (("paper", "two-hour ranges"), ("calibrated", "hourly, calibrated at 90 %")):
        options = TrafficOptions.model_validate({"property": kind})
        full = [prepare(series, dataset.measures, options, residual=True) for series in dataset.series]
        for days in DAYS:
            told = [pair for new in _drawn(len(full)) for pair in _compared(full, new, dataset, options, days)]
            shares = [float(np.mean([pair[k] for pair in told])) for k in range(4)]
            rows.append([title, str(days), str(len(told)), *(f"{100 * s:.0f} %" for s in shares[:2])])
            rows[-1] += [f"{width:.2f}" for width in shares[2:]]
    return rows


def _drawn(count: int) -> list[list[int]]:
    if count <= APART:
        return [[k] for k in range(count)]
    return [np.random.default_rng(0).permutation(count)[:APART].tolist()]


def _compared(
    full: Sequence[Sensor], new: Sequence[int], dataset: Dataset, options: TrafficOptions, days: int
) -> Iterator[tuple[float, float, float, float]]:
    """(own share, pooled share, own width, pooled width) of every newcomer with a day seen in full."""
    members = {str(k): sensor.ranges.arrays() for k, sensor in enumerate(full) if k not in new}
    pooled = neighbourhoods(*({name: told[end] for name, told in members.items()} for end in ("low", "high")))
    for k in new:
        first = int(full[k].test[0])
        known = _from(full[k].series, first - days * 24 * 3600 // full[k].step, full[k].step)
        late = prepare(_until(known, days), dataset.measures, options, residual=True, whole=True)
        mine, theirs = (_held(full[k], late, ranges) for ranges in (late.ranges, adopted(late, pooled, options).ranges))
        if mine:
            yield mine["rho_trace"], theirs["rho_trace"], late.ranges.width, adopted(late, pooled, options).ranges.width


def _from(series: Series, first: int, step: int) -> Series:
    start = series.times(step)[first]
    return replace(series, start=start, values=series.values[first:], observed=series.observed[first:])


def _until(series: Series, days: int) -> Series:
    return replace(series, values=series.values[: 24 * days], observed=series.observed[: 24 * days])


def _held(full: Sensor, late: Sensor, ranges: Ranges) -> Mapping[str, float]:
    """Shares of the test windows, seen in full, that obey ranges in the newcomer's own units."""
    places = full.test[:, None] + np.arange(24)
    places = places[full.observed[places].all(axis=(1, 2))]
    truth = late.scaler.scale(full.series.values)[places]
    return obedience(ranges.excess(truth, full.clock[places])) if len(places) else {}
