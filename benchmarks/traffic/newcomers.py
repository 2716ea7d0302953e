"""What a property is worth that newcomers take from members: their own holds on few of the days to come.

Some sensors have but the last days before the test; the others have all of theirs, and their properties are pooled in groups
as FedSTL's server does. Newcomers never trained: only properties are compared, no forecast.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.memory import Memory
from benchmarks.traffic.sets import Setting
from client.tasks.traffic.cold_start import with_pooled_property
from client.tasks.traffic.data.series import Sensors, Series
from client.tasks.traffic.prepare import Sensor, prepare
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.ranges import Ranges, satisfaction
from server.aggregation.pooled_properties import neighbourhoods

DAYS = (5, 7)
APART = 25
"""Sensors that are newcomers at once; of a smaller set, each in turn is the only one."""


@dataclass(frozen=True)
class Newcomers:
    """Means over newcomers of so many days under one kind of property, their own or the pooled one.

    Args:
        title: The kind.
        days: That are known of each.
        count: Newcomers with a test day seen in full.
        own: Share of the true days that the own property holds on.
        pooled: Share that the pooled one holds on.
        own_width: In the newcomer's own deviations.
        pooled_width: Likewise.
    """

    title: str
    days: int
    count: int
    own: float
    pooled: float
    own_width: float
    pooled_width: float


def newcomers(setting: Setting, folder: Path, memory: Memory) -> list[Newcomers]:
    """Two kinds of property, five days and seven; none if that is not known and must not be computed."""
    key = f"{setting.key}-newcomers"
    found = memory.recall(key, lambda: [asdict(row) for row in _computed(setting, folder, memory.folder)])
    return [Newcomers(**row) for row in found or ()]


def _computed(setting: Setting, folder: Path, cache: Path) -> list[Newcomers]:
    dataset = setting.dataset(folder, cache)
    rows = []
    for kind, title in (("paper", "two-hour ranges"), ("calibrated", "hourly, calibrated at 90 %")):
        options = TrafficOptions.model_validate({"property": kind})
        full = [prepare(series, dataset.vocabulary, options, residual=True) for series in dataset.units]
        for days in DAYS:
            told = [pair for new in _drawn(len(full)) for pair in _compared(full, new, dataset, options, days)]
            own, pooled, *widths = (float(np.mean([pair[k] for pair in told])) for k in range(4))
            rows.append(Newcomers(title, days, len(told), own, pooled, *widths))
    return rows


def _drawn(count: int) -> list[list[int]]:
    if count <= APART:
        return [[k] for k in range(count)]
    return [np.random.default_rng(0).permutation(count)[:APART].tolist()]


def _compared(
    full: Sequence[Sensor], new: Sequence[int], dataset: Sensors, options: TrafficOptions, days: int
) -> Iterator[tuple[float, float, float, float]]:
    """(own share, pooled share, own width, pooled width) of every newcomer with a day seen in full."""
    members = {str(k): sensor.ranges.arrays() for k, sensor in enumerate(full) if k not in new}
    pooled = neighbourhoods(*({name: told[end] for name, told in members.items()} for end in ("low", "high")))
    for k in new:
        first = int(full[k].test[0])
        known = _from(full[k].series, first - days * 24 * 3600 // full[k].step, full[k].step)
        late = prepare(_until(known, days), dataset.vocabulary, options, residual=True, whole=True)
        mine, theirs = (
            _held(full[k], late, ranges) for ranges in (late.ranges, with_pooled_property(late, pooled, options).ranges)
        )
        if mine:
            yield (
                mine["rho_trace"],
                theirs["rho_trace"],
                late.ranges.width,
                with_pooled_property(late, pooled, options).ranges.width,
            )


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
    return satisfaction(ranges.excess(truth, full.clock[places])) if len(places) else {}
