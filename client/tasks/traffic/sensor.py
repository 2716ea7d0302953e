"""Prepared sensor: scaled readings, profile, windows, repaired histories, ridge forecasts."""

import logging
from dataclasses import dataclass, field, replace

import numpy as np

from client.tasks.traffic.baseline import Windows, complete_windows, fit_ridge, profile, shrunk_weights
from client.tasks.traffic.calibration import Calibrated, WindowedReadings, calibrate
from client.tasks.traffic.data.series import Scaler, Series, split_series
from client.tasks.traffic.formula_property import Stated, state_formula
from common.arrays import Arrays, Flags, Floats, Ints
from common.tasks.traffic.autocovariances import LAGS, PAIRS, SUMS, check_lags, lag_sums, linear_forecast, split_noise
from common.tasks.traffic.options import TrafficOptions, compared_variables
from common.tasks.traffic.properties import POOLED, Ranges, groups_of, infer, middle, rows_per_week, to_differences
from common.tasks.traffic.shared_ridge import CHOICE, MIDDLE, PENALTIES, SHARES, SIZES, best_choice
from common.tasks.traffic.vocabulary import DAY, SensorVariables

log = logging.getLogger("fedloom.client")

MONDAY = np.datetime64("1970-01-05T00:00:00", "s")
"""Start of a week."""


@dataclass(frozen=True)
class Sensor:
    """Sensor in one run: T readings of D variables in standard deviations.

    Filled gaps are used in histories, not as true readings.

    Args:
        series: Series as read.
        step: Seconds between readings.
        scaler: Scaler to and from the data's units.
        values: Scaled readings, T × D.
        inputs: The same as histories hold them, T × D: repaired under `repair=property`.
        profile: Weekly profile at each reading, T × D.
        base: Reference of the forecasts, T × D: the profile, or zeros under the paper's model.
        ridge: Ridge forecast of residuals for the window at each first target, T × P × D; empty without ridge.
        slots: Slot of the week of each reading, T.
        clock: Row of the property's tables of each reading, T.
        calibrated: Property of the training part, with its margins after it.
        past: Number of readings before the end of the training part, or of all readings used for fitting.
        usable: True for readings used for fitting: observed and in the past, T.
        days: Number of days of usable readings, rounded down.
        train: First targets of the training windows.
        validation: First targets of the validation windows.
        test: First targets of the test windows.
        stated: Formula that forecasts are judged by in place of the property; None without one.
        pooled: True if the property is pooled from other clients (`cold_start`).
        shared: Weights of the federated ridge, which are part of `ridge`, H·D × P·D; empty without them.
        choice: α and λ of the ridge that is shrunk to them.
    """

    series: Series
    step: int
    scaler: Scaler
    values: Floats
    inputs: Floats
    profile: Floats
    base: Floats
    ridge: Floats
    slots: Ints
    clock: Ints
    calibrated: Calibrated
    past: int
    usable: Flags
    days: int
    train: Ints
    validation: Ints
    test: Ints
    stated: Stated | None
    pooled: bool = False
    shared: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    choice: tuple[float, float] = MIDDLE

    def starts(self, split: str) -> Ints:
        """Return first targets of the windows of a split."""
        return self.test if split == "test" else self.validation

    def targets(self, first: Ints, horizon: int) -> tuple[Floats, Ints]:
        """Return true readings of windows, N × P × D, and their places in the series, N × P."""
        places = first[:, None] + np.arange(horizon)
        return self.values[places], places

    def error(self, forecast: Floats, places: Ints) -> float:
        """Compute the MSE of forecasts, N × P × D, over observed readings at `places`; NaN without any."""
        seen = self.observed[places]
        return float(np.mean((forecast - self.values[places])[seen] ** 2)) if seen.any() else float("nan")

    def last_week_error(self, places: Ints) -> float:
        """Compute the MSE of repeating the week before; NaN if a window has no such week."""
        before = places - self.week
        return self.error(self.values[before], places) if before.min(initial=0) >= 0 else float("nan")

    @property
    def ranges(self) -> Ranges:
        """Property at the end of the training part."""
        return self.calibrated.ranges

    def margins(self, first: Ints) -> Floats:
        """Return the property's margins for windows with first targets at `first`, N × 1, in spreads."""
        return self.calibrated.margins[first, None]

    @property
    def observed(self) -> Flags:
        """True for observed readings, False for filled gaps, T × D."""
        return self.series.observed

    @property
    def repaired(self) -> Flags:
        """True for readings that histories do not hold as they were read, T × D."""
        return np.asarray(self.inputs != self.values)

    @property
    def week(self) -> int:
        """Number of readings per week."""
        return 7 * DAY // self.step


def prepare(
    series: Series, variables: SensorVariables, options: TrafficOptions, *, residual: bool, whole: bool = False
) -> Sensor:
    """Scale and split a series; fit profile, ridge and property to the training part.

    Args:
        series: Series of T readings.
        variables: Vocabulary of the run.
        options: Options of the task.
        residual: True if forecasts are residuals of the profile.
        whole: True to fit to all readings, in units of the training part, for forecasts beyond the series.

    Raises:
        ConfigError: The property names variables that the vocabulary lacks.
    """
    step, split = variables.step_seconds, split_series(series, options, variables.step_seconds)
    values = split.scaler.scale(series.values)
    seconds = (series.times(step).astype("datetime64[s]") - MONDAY).astype(np.int64)
    slots, clock = seconds % (7 * DAY) // step, seconds % (7 * DAY) // (7 * DAY // rows_per_week(step))
    past = len(values) if whole else split.train_end
    observed, windows = np.asarray(series.observed.all(axis=1)), seconds // (options.horizon * step)
    usable = (np.arange(len(values)) < past) & observed
    weekly_profile = profile(values, slots, usable, 7 * DAY // step)
    base = weekly_profile if residual else np.zeros_like(weekly_profile)
    readings = WindowedReadings(values, clock, observed, past, windows, options.horizon)
    calibrated = _property(readings, variables, options)
    bounded = usable.any() and options.property != "difference"
    if bounded and series.values[usable].min() >= 0:  # non-negative readings stay non-negative
        least = split.scaler.scale(np.zeros((1, values.shape[1])))
        calibrated = replace(calibrated, ranges=calibrated.ranges.above(least))
    days, inputs = int(usable.sum()) * step // DAY, values
    if (options.repair == "property" or (options.repair == "auto" and residual)) and days >= REPAIRED_DAYS:
        forbidden = calibrated.ranges.excess(values, clock, calibrated.margins) > 0
        inputs = np.where(forbidden & ~usable[:, None], weekly_profile, values)
    return Sensor(
        series,
        step,
        split.scaler,
        values,
        inputs,
        weekly_profile,
        base,
        fit_ridge(inputs - base, usable, options) if residual else np.zeros((0, 0, 0)),
        slots,
        clock,
        calibrated,
        past,
        usable,
        days,
        split.train,
        split.validation,
        split.test,
        state_formula(options, variables, split.scaler, values, slots, usable),
    )


def _property(readings: WindowedReadings, variables: SensorVariables, options: TrafficOptions) -> Calibrated:
    """Infer the property of a sensor's past."""
    if options.property == "difference":
        first, second = compared_variables(options, variables)
        values = readings.values[:, [first]] - readings.values[:, [second]]
        found = _ranges(replace(readings, values=values), variables.step_seconds, options)
        return replace(found, ranges=to_differences(found.ranges, (first, second)))
    return _ranges(readings, variables.step_seconds, options)


def _ranges(readings: WindowedReadings, step: int, options: TrafficOptions) -> Calibrated:
    week = rows_per_week(step)
    groups = groups_of("paper" if options.property == "paper" else "hourly", week)
    usable, none = np.flatnonzero(readings.observed[: readings.past]), np.zeros(len(readings.values))
    if not len(usable):
        zeros = np.zeros((week, readings.values.shape[1]))
        return Calibrated(Ranges(zeros - np.inf, zeros + np.inf), none)
    if options.property in ("weekday", "paper"):
        return Calibrated(infer(readings.values[usable], readings.rows[usable], groups), none)
    return calibrate(readings, groups, options.coverage, one_sided=options.property == "difference")


def warn_too_short(options: TrafficOptions) -> None:
    """Log on this machine the reason why the client has no training windows."""
    log.warning(
        "no training windows: a window needs %s consecutive readings; lower tasks.traffic.history",
        options.history + options.horizon,
    )


def is_cold_start(sensor: Sensor, options: TrafficOptions) -> bool:
    """Return True if the sensor has fewer days of readings than the option `newcomer-days`."""
    return sensor.days < options.newcomer_days


def with_pooled_property(sensor: Sensor, statics: Arrays, options: TrafficOptions) -> Sensor:
    """Return a cold-start sensor with the weaker of its own property and the closest pooled one.

    The closest group has ranges with the smallest mean squared distance to the sensor's readings. A sensor that is not new,
    has no readings, or has no matching groups in `statics` is returned unchanged.

    Args:
        sensor: Sensor with its own property.
        statics: Untrained inputs of a model; `POOLED` names bounds of G groups in units of each client's scaler.
        options: Options of the task.
    """
    low, high = (statics.get(name, np.zeros(0)) for name in POOLED)
    ranges = sensor.ranges
    fits = low.shape[1:] == ranges.low.shape and low.shape == high.shape
    if not (fits and is_cold_start(sensor, options) and sensor.usable.any()):
        return sensor
    clock, readings = sensor.clock[sensor.usable], ranges.bounded_values(sensor.values[sensor.usable])
    j = int(np.argmin([np.square(readings - table[clock]).mean() for table in middle(low, high)]))
    weakest = Calibrated(ranges.weaken(low[j], high[j]), np.zeros(len(sensor.values)), sensor.calibrated.weight)
    return replace(sensor, calibrated=weakest, pooled=True)


REPAIRED_DAYS = 14
"""Days at the end of the data whose forbidden readings are faults; earlier ones change the property."""


def without_faults(sensor: Sensor) -> Series:
    """Return the series with repaired readings in its last two weeks; these count as filled."""
    recent = np.arange(len(sensor.values)) >= len(sensor.values) - REPAIRED_DAYS * DAY // sensor.step
    broken = sensor.repaired & recent[:, None]
    values = np.where(broken, sensor.scaler.unscale(sensor.inputs), sensor.series.values)
    return replace(sensor.series, values=values, observed=sensor.observed & ~broken)


@dataclass(frozen=True)
class OwnForecaster:
    """Forecaster by a sensor's own profile, which needs no model.

    Args:
        options: Options of the task.
        variables: Vocabulary of the run.
        with_ridge: True to add the sensor's ridge regression.
    """

    options: TrafficOptions
    variables: SensorVariables
    with_ridge: bool = True
    residual: bool = field(default=True, init=False)

    def forecasts(self, model: Arrays, sensor: Sensor, first: Ints) -> Floats:
        """Return the profile, plus the ridge forecast if wanted, N × P × D."""
        usual: Floats = sensor.profile[first[:, None] + np.arange(self.options.horizon)]
        return usual + sensor.ridge[first] if self.with_ridge else usual


ROUNDING = 1e-9
"""Relative rounding error of a sum of squares."""


def compute_sums(sensor: Sensor, options: TrafficOptions) -> Arrays:
    """Compute the sensor's part of the sums over sensors, from residuals of its training part."""
    return lag_sums(sensor.values - sensor.profile, sensor.usable, options.history + options.horizon)


def includes(total: Arrays, part: Arrays) -> bool:
    """Return True if `part` can be a summand of `total`: no more pairs at any lag, no larger squares."""
    squares, own_squares = (np.diagonal(sums[LAGS][0]) for sums in (total, part))
    return bool((total[PAIRS] >= part[PAIRS]).all() and (squares >= own_squares * (1 - ROUNDING)).all())


def with_federated_ridge(sensor: Sensor, statics: Arrays, options: TrafficOptions) -> Sensor:
    """Return the sensor whose own ridge is shrunk to the federated one; unchanged without a closed form.

    Raises:
        WireError: The sums in `statics` are malformed or have other variables.
    """
    if not sensor.ridge.size or not _has_sums(statics):
        return sensor
    weights = _federated_weights(sensor, statics, options)
    share, penalty = with_choice(sensor, statics, options)[CHOICE].tolist()
    joint = replace(sensor, shared=weights, choice=(share, penalty))
    return replace(joint, ridge=joint_ridge(joint, sensor.ridge, options))


def _has_sums(statics: Arrays) -> bool:
    """Return True if the first sum of a closed form is solved."""
    return {*SUMS, SIZES} <= statics.keys()


def _federated_weights(sensor: Sensor, statics: Arrays, options: TrafficOptions) -> Floats:
    sums, noise = split_noise(statics)
    check_lags(sums, sensor.values.shape[1])
    return linear_forecast(sums, options.history, options.horizon, noise)


def with_choice(sensor: Sensor, statics: Arrays, options: TrafficOptions) -> Arrays:
    """Return the statics with the sensor's own choice, if all clients of a closed form made none together.

    Args:
        sensor: Sensor that is fitted to its training part.
        statics: Untrained inputs of a model.
        options: Options of the task.
    """
    if CHOICE in statics or not _has_sums(statics):
        return statics
    errors = choice_errors(sensor, _federated_weights(sensor, statics, options), options)
    return {**statics, CHOICE: np.array(MIDDLE if errors is None else best_choice(errors))}


def choice_errors(sensor: Sensor, weights: Floats, options: TrafficOptions) -> Floats | None:
    """Return the errors on validation data in the order of `CHOICES`; None without such data.

    Args:
        sensor: Sensor that is fitted to its training part.
        weights: Federated weights, H·D × P·D; 0 × 0 if there are none.
        options: Options of the task.
    """
    first, variables = sensor.validation, sensor.values.shape[1]
    places = first[:, None] + np.arange(options.horizon)
    if not sensor.observed[places].any():
        return None
    shared = weights if len(weights) else np.zeros((options.history * variables, options.horizon * variables))
    windows, errors = Windows(sensor.inputs - sensor.base, options.history, options.horizon), []
    past, base = windows.past(first), sensor.base[places]
    for each in shrunk_weights(windows, complete_windows(sensor.usable, options), shared, PENALTIES[::-1]):
        own_part, toward = (windows.shaped(past @ part) for part in each)
        errors.append([sensor.error(base + own_part + share * toward, places) for share in SHARES])
    return np.array(errors).T.ravel()


def joint_ridge(sensor: Sensor, ridge: Floats, options: TrafficOptions) -> Floats:
    """Return the forecasts of a sensor's ridge that is shrunk to the federated one, T × P × D.

    Without federated weights, or without a window, the own forecasts are returned.

    Args:
        sensor: Sensor with federated weights.
        ridge: Own ridge forecasts of every window, T × P × D.
        options: Options of the task.
    """
    departures = sensor.inputs - sensor.base
    length, variables = departures.shape
    if len(sensor.shared) != options.history * variables or length <= options.history:
        return ridge
    windows, all_windows = Windows(departures, options.history, options.horizon), np.arange(options.history, length)
    past, joint = windows.past(all_windows), ridge.copy()
    (share, penalty), train = sensor.choice, complete_windows(sensor.usable, options)
    [(own_part, toward)] = shrunk_weights(windows, train, sensor.shared, [penalty])
    joint[all_windows] = windows.shaped(past @ (own_part + share * toward))
    return joint


def baseline_statics(statics: Arrays) -> Arrays:
    """Return the statics of the ridge baseline: without the sums of a closed form, which are the model."""
    return {name: a for name, a in statics.items() if name in POOLED}
