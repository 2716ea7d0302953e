"""One sensor made ready for a run: scaled, with its profile, its property and its windows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client.data.traffic.series import Series
from client.data.traffic.split import Scaler, SplitSeries, split_series
from client.tasks.traffic_line import profile
from common.tasks.traffic import Measures, TrafficOptions
from common.tasks.traffic_ranges import DAY, Ranges, calibrated, groups_of, infer

Floats = NDArray[np.float64]
MONDAY = np.datetime64("1970-01-05T00:00")


@dataclass(frozen=True)
class Sensor:
    """Readings in standard deviations, T × D, and what is known of them. Filled gaps serve as history, never as truth.

    Args:
        series: As it was read.
        scaler: To and from the data's own units.
        values: Scaled readings.
        profile: What the sensor usually reads then.
        base: What forecasts are departures from: the profile, or nothing under the paper's model.
        slots: Which reading of the week each is, T.
        ranges: The property of the training part.
        held: Share of past days that the property held on, each judged without its week; NaN where that was not judged.
        train: First targets of the training windows.
        validation: Of the validation windows.
        test: Of the test windows.
    """

    series: Series
    scaler: Scaler
    values: Floats
    profile: Floats
    base: Floats
    slots: NDArray[np.int64]
    ranges: Ranges
    held: float
    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]

    def starts(self, split: str) -> NDArray[np.int64]:
        """First targets of the windows of a split."""
        return self.test if split == "test" else self.validation

    def targets(self, first: NDArray[np.int64], horizon: int) -> tuple[Floats, NDArray[np.int64]]:
        """True readings of windows, N × P × D, and their places in the series, N × P."""
        places = first[:, None] + np.arange(horizon)
        return self.values[places], places

    def error(self, forecast: Floats, places: NDArray[np.int64]) -> float:
        """MSE over the readings that were observed, of forecasts N × P × D for `places`; NaN where none was."""
        seen = self.observed[places]
        return float(np.mean((forecast - self.values[places])[seen] ** 2)) if seen.any() else float("nan")

    def last_week_error(self, places: NDArray[np.int64]) -> float:
        """MSE of repeating the same hours of the week before; NaN where a window has no such week."""
        before = places - self.week
        return self.error(self.values[before], places) if before.min(initial=0) >= 0 else float("nan")

    @property
    def observed(self) -> NDArray[np.bool_]:
        """T × D, false where a gap was filled."""
        return self.series.observed

    @property
    def week(self) -> int:
        """Readings a week, W."""
        return len(self.ranges.low)


def prepare(series: Series, measures: Measures, options: TrafficOptions, *, residual: bool) -> Sensor:
    """Scale, cut, and learn from the training part alone what the sensor usually reads and what its readings obey."""
    split: SplitSeries = split_series(series, options, measures.step)
    week = 7 * DAY // measures.step
    values = split.scaler.scale(series.values)
    times = series.times(measures.step)
    minutes = (times - MONDAY).astype("timedelta64[m]").astype(np.int64)
    slots = minutes % (7 * DAY) // measures.step
    past = np.arange(len(values)) < split.train_end
    known = past & series.observed.all(axis=1)
    usual = profile(values, slots, known, week)
    base = usual if residual else np.zeros_like(usual)
    ranges, held = _property(values[known], slots[known], minutes[known] // DAY, week, options)
    if series.values[known].min(initial=0) >= 0:  # what never was negative will not be
        ranges = Ranges(np.maximum(ranges.low, split.scaler.scale(np.zeros((1, values.shape[1])))), ranges.high)
    return Sensor(
        series,
        split.scaler,
        values,
        usual,
        base,
        slots,
        ranges,
        held,
        split.train,
        split.validation,
        split.test,
    )


def _property(
    values: Floats, slots: NDArray[np.int64], days: NDArray[np.int64], week: int, options: TrafficOptions
) -> tuple[Ranges, float]:
    if not len(values):
        anything = np.zeros((week, values.shape[1]))
        return Ranges(anything - np.inf, anything + np.inf), float("nan")
    if options.property == "calibrated":
        return calibrated(values, slots, days, groups_of("hourly", week), options.coverage)
    return infer(values, slots, groups_of("paper" if options.property == "paper" else "hourly", week)), float("nan")
