"""One sensor made ready for a run: scaled, with its profile, its property and its windows."""

import logging
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from client.tasks.traffic.data.series import Series
from client.tasks.traffic.data.split import Scaler, split_series
from client.tasks.traffic.profile import profile
from client.tasks.traffic.ridge import PENALTIES, Windows, ridge_line
from common.tasks.traffic.differences import apart
from common.tasks.traffic.options import TrafficOptions, compared
from common.tasks.traffic.ranges import Calibrated, Ranges, calibrated, groups_of, infer, rows_a_week
from common.tasks.traffic.vocabulary import DAY, SensorVariables

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
log = logging.getLogger("fedloom.client")

MONDAY = np.datetime64("1970-01-05T00:00:00", "s")


@dataclass(frozen=True)
class Sensor:
    """Readings in standard deviations, T × D, and what is known of them. Filled gaps serve as history, never as truth.

    Args:
        series: As it was read.
        step: Seconds between readings.
        scaler: To and from the data's own units.
        values: Scaled readings.
        profile: What the sensor usually reads then.
        base: What forecasts are departures from: the profile, or nothing under the paper's model.
        line: Departures that the sensor itself expects of the window at each first target, T × P × D; empty without a ridge.
        slots: Which reading of the week each is, T.
        clock: Which row of the property's tables each is under, T.
        ranges: The property of the training part.
        held: Share of past days that the property held on, each judged without its week; NaN where that was not judged.
        seen: Share of the readings of those days that were observed, below 1 where too few whole days were.
        past: Readings up to the end of the training part, or of what else the sensor learns from.
        known: Which readings the sensor learns from: of its past, and observed, T.
        days: Days that they would make, rounded down.
        train: First targets of the training windows.
        validation: Of the validation windows.
        test: Of the test windows.
        pooled: Whether the property is pooled from members alike (`traffic_newcomer`).
        shared: Weights of everybody's line, of which `line` is half (`traffic_together`), H·D × P·D; empty without one.
    """

    series: Series
    step: int
    scaler: Scaler
    values: Floats
    profile: Floats
    base: Floats
    line: Floats
    slots: Places
    clock: Places
    ranges: Ranges
    held: float
    seen: float
    past: int
    known: NDArray[np.bool_]
    days: int
    train: Places
    validation: Places
    test: Places
    pooled: bool = False
    shared: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def starts(self, split: str) -> Places:
        """First targets of the windows of a split."""
        return self.test if split == "test" else self.validation

    def targets(self, first: Places, horizon: int) -> tuple[Floats, Places]:
        """True readings of windows, N × P × D, and their places in the series, N × P."""
        places = first[:, None] + np.arange(horizon)
        return self.values[places], places

    def error(self, forecast: Floats, places: Places) -> float:
        """MSE over the readings that were observed, of forecasts N × P × D for `places`; NaN where none was."""
        seen = self.observed[places]
        return float(np.mean((forecast - self.values[places])[seen] ** 2)) if seen.any() else float("nan")

    def last_week_error(self, places: Places) -> float:
        """MSE of repeating the same hours of the week before; NaN where a window has no such week."""
        before = places - self.week
        return self.error(self.values[before], places) if before.min(initial=0) >= 0 else float("nan")

    @property
    def observed(self) -> NDArray[np.bool_]:
        """T × D, false where a gap was filled."""
        return self.series.observed

    @property
    def week(self) -> int:
        """Readings a week."""
        return 7 * DAY // self.step


def prepare(
    series: Series, measures: SensorVariables, options: TrafficOptions, *, residual: bool, whole: bool = False
) -> Sensor:
    """Scale, cut, and learn from the training part alone what the sensor usually reads and what its readings obey.

    Args:
        series: T readings.
        measures: What they are of.
        options: Of the run.
        residual: Whether forecasts are departures from the profile.
        whole: Learn from all readings, in the units of the training part: for forecasts of what nobody has seen.

    Raises:
        ConfigError: The property compares variables that the federation lacks.
    """
    step, split = measures.step_seconds, split_series(series, options, measures.step_seconds)
    values = split.scaler.scale(series.values)
    seconds = (series.times(step).astype("datetime64[s]") - MONDAY).astype(np.int64)
    slots, clock = seconds % (7 * DAY) // step, seconds % (7 * DAY) // (7 * DAY // rows_a_week(step))
    past = len(values) if whole else split.train_end
    known = (np.arange(len(values)) < past) & series.observed.all(axis=1)
    usual = profile(values, slots, known, 7 * DAY // step)
    base = usual if residual else np.zeros_like(usual)
    ranges, held, seen = _property(values[known], clock[known], seconds[known] // DAY, measures, options)
    bounded = known.any() and options.property != "difference"
    if bounded and series.values[known].min() >= 0:  # what never was negative will not be
        ranges = Ranges(np.maximum(ranges.low, split.scaler.scale(np.zeros((1, values.shape[1])))), ranges.high)
    return Sensor(
        series,
        step,
        split.scaler,
        values,
        usual,
        base,
        line_of(values - base, known, options) if residual else np.zeros((0, 0, 0)),
        slots,
        clock,
        ranges,
        held,
        seen,
        past,
        known,
        int(known.sum()) * step // DAY,
        split.train,
        split.validation,
        split.test,
    )


def line_of(departures: Floats, known: NDArray[np.bool_], options: TrafficOptions) -> Floats:
    """The sensor's own ridge line, T × P × D, from the windows whose targets and last reading before are known.

    Empty where none is wanted.
    """
    if options.ridge == "none":
        return np.zeros((0, 0, 0))
    first = np.arange(options.history, len(known) - options.horizon + 1)
    so_far = np.concatenate([[0], np.cumsum(known)])
    whole = so_far[first + options.horizon] - so_far[first - 1] == options.horizon + 1
    return ridge_line(Windows(departures, options.history, options.horizon), first[whole], PENALTIES)


def _property(
    values: Floats, clock: Places, days: Places, measures: SensorVariables, options: TrafficOptions
) -> Calibrated:
    """The property of readings, T × D, and how many of their days it held on."""
    if options.property != "difference":
        return _ranges(values, clock, days, measures.step_seconds, options)
    first, second = compared(options, measures)
    found = _ranges(values[:, [first]] - values[:, [second]], clock, days, measures.step_seconds, options)
    return found._replace(ranges=apart(found.ranges, (first, second)))


def _ranges(values: Floats, clock: Places, days: Places, step: int, options: TrafficOptions) -> Calibrated:
    week, unjudged = rows_a_week(step), float("nan")
    if not len(values):
        anything = np.zeros((week, values.shape[1]))
        return Calibrated(Ranges(anything - np.inf, anything + np.inf), unjudged, unjudged)
    if options.property in ("calibrated", "difference"):
        return calibrated(values, clock, days, groups_of("hourly", week), options.coverage, DAY // step)
    groups = groups_of("paper" if options.property == "paper" else "hourly", week)
    return Calibrated(infer(values, clock, groups), unjudged, unjudged)


def warn_too_short(options: TrafficOptions) -> None:
    """Say in the client's own log why there is nothing to train on."""
    needed = f"{options.history} readings to look back on and {options.horizon} to forecast"
    log.warning("nothing to train on: a window needs %s, and no series has so many in a row to train on", needed)
