"""Properties of cold-start sensors, inferred from their few days or pooled from other sensors.

Cold-start sensors have only the last days before the test. All others have all of theirs, and their properties are pooled
in groups as by FedSTL's server. Cold-start sensors never train: only properties are compared, no forecasts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from client.tasks.traffic.data.series import Sensors, Series
from client.tasks.traffic.sensor import Sensor, prepare, with_pooled_property
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.properties import Ranges, satisfaction
from server.methods.fedstl import pool_neighbors
from studies.harness.bench import Bench
from studies.harness.row import Trial

AT_ONCE = 25
"""Cold-start sensors at once; of a smaller set, each in turn is the only one."""

Comparison = tuple[float, float, float, float]
"""Own share, pooled share, own width and pooled width of one sensor."""


def cold_start(bench: Bench, kind: str, days: int) -> Trial:
    """Compare own and pooled properties of one kind, inferred from so many days.

    `own` and `pooled` are the shares of true days that satisfy the property; widths are in the sensor's own deviations.
    """
    dataset: Sensors = bench.dataset
    options = TrafficOptions.model_validate({"property": kind})
    full = [prepare(series, dataset.vocabulary, options, residual=True) for series in dataset.units]
    found = [one for new in _groups(len(full)) for one in _compare(full, new, dataset, options, days)]
    means = (float(np.mean(values)) for values in zip(*found, strict=True))
    names = ("own", "pooled", "own_width", "pooled_width")
    return Trial({"days": days, "count": len(found), **dict(zip(names, means, strict=True))})


def _groups(count: int) -> list[list[int]]:
    if count <= AT_ONCE:
        return [[k] for k in range(count)]
    return [np.random.default_rng(0).permutation(count)[:AT_ONCE].tolist()]


def _compare(
    full: Sequence[Sensor], new: Sequence[int], dataset: Sensors, options: TrafficOptions, days: int
) -> Iterator[Comparison]:
    """Yield the comparison of every cold-start sensor that has a fully observed test day."""
    members = {str(k): sensor.ranges.arrays() for k, sensor in enumerate(full) if k not in new}
    pooled = pool_neighbors(*({name: own[end] for name, own in members.items()} for end in ("low", "high")))
    for k in new:
        first = int(full[k].test[0])
        recent = _from(full[k].series, first - days * 24 * 3600 // full[k].step, full[k].step)
        late = prepare(_until(recent, days), dataset.vocabulary, options, residual=True, whole=True)
        ranges = late.ranges, with_pooled_property(late, pooled, options).ranges
        own, taken = (_satisfied_shares(full[k], late, one) for one in ranges)
        if own:
            yield own["rho_trace"], taken["rho_trace"], ranges[0].width, ranges[1].width


def _from(series: Series, first: int, step: int) -> Series:
    start = series.times(step)[first]
    return replace(series, start=start, values=series.values[first:], observed=series.observed[first:])


def _until(series: Series, days: int) -> Series:
    return replace(series, values=series.values[: 24 * days], observed=series.observed[: 24 * days])


def _satisfied_shares(full: Sensor, late: Sensor, ranges: Ranges) -> Mapping[str, float]:
    """Return shares of fully observed test windows that satisfy ranges in the sensor's own units."""
    places = full.test[:, None] + np.arange(24)
    places = places[full.observed[places].all(axis=(1, 2))]
    truth = late.scaler.scale(full.series.values)[places]
    return satisfaction(ranges.excess(truth, full.clock[places])) if len(places) else {}
