"""Series of a client, their tables in long form, and their split in order of time.

A table has columns of time, site, and readings of each variable.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from client.data.dataset import Dataset, floor_share
from client.data.tables.files import TABLES, plain_name, tables_in, write_private_csv
from client.data.tables.schema import Column, TableSchema
from common.arrays import Flags, Floats, Ints
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import DAY, HOUR, SensorVariables

SUFFIXES = (*TABLES, ".vol")
"""Suffixes of tables and of FHWA's station volumes."""

TIME, SITE = "timestamp", "site"

SCHEMA = TableSchema(
    columns=(
        Column(TIME, "time", ("time", "datetime", "date", "lastchanged", "ts")),
        Column(
            SITE,
            "text",
            ("siteid", "sensor", "sensorid", "station", "stationid", "detector", "series", "entityid"),
            required=False,
        ),
    ),
    rest="numbers",
    clock="wall",
    unit=SITE,
    wide=(SITE, "value"),
)


@dataclass(frozen=True)
class Series:
    """One sensor's readings on a regular grid: what becomes a client.

    Args:
        name: Private.
        start: Time of the first reading by the sensor's own clock, in minutes, or in seconds where steps are.
        values: T × D, in the data's own units; gaps are filled.
        observed: T × D, false where a gap was filled.
    """

    name: str
    start: np.datetime64
    values: Floats
    observed: Flags

    def times(self, step: int) -> NDArray[np.datetime64]:
        """Time of every reading, T; `step` in seconds."""
        count, unit = in_units(step)
        return self.start + np.arange(len(self.values)) * np.timedelta64(count, unit)


Sensors = Dataset[SensorVariables, Series]


def in_units(seconds: int) -> tuple[int, Literal["m", "s"]]:
    """Return a time as whole minutes, or as seconds where it is none."""
    return (seconds, "s") if seconds % 60 else (seconds // 60, "m")


FILES = (
    r"originaldataset\.csv",
    r"volume_data\.csv",
    r"metro_interstate_traffic_volume\.csv",
    r"statedaily_.*\.csv",
    r".*\.vol",
)
"""Names of the published files, as patterns in lower case and without `.gz`.

VicRoads' Boroondara and ten sites, I-94, FHWA by state and day, FHWA's hourly station volumes."""


def is_published(folder: Path) -> bool:
    """Return True if a folder's files are parts of one data set, not several clients' tables."""
    names = [plain_name(path) for path in tables_in(folder, SUFFIXES)]
    return any(re.fullmatch(pattern, name) for pattern in FILES for name in names)


def write_series(path: Path, dataset: Sensors) -> None:
    """Write series as CSV, readable by the owner only; `read_series` with the vocabulary inverts it.

    Filled gaps are written as empty cells, which the reader fills again.
    """
    rows = (row for series in dataset.units for row in _rows(series, dataset.vocabulary.step_seconds))
    write_private_csv(path, (TIME, SITE, *dataset.vocabulary.variables), rows)


def _rows(series: Series, step: int) -> Iterator[tuple[str | float, ...]]:
    readings = zip(
        series.times(step).astype(str).tolist(), series.values.tolist(), series.observed.tolist(), strict=True
    )
    for time, values, observed in readings:
        yield time, series.name, *(value if there else "" for value, there in zip(values, observed, strict=True))


@dataclass(frozen=True, eq=False)
class Scaler:
    """Standardises variables.

    Args:
        mean: D, in the data's units.
        std: D, positive.
    """

    mean: Floats
    std: Floats

    def scale(self, values: Floats) -> Floats:
        """Convert the data's units to standard deviations from the mean, … × D."""
        return (values - self.mean) / self.std

    def unscale(self, values: Floats) -> Floats:
        """Invert `scale`, … × D."""
        return values * self.std + self.mean


@dataclass(frozen=True, eq=False)
class SplitSeries:
    """A series in three parts, [0, `train_end`), [`train_end`, `validation_end`) and the rest.

    Args:
        scaler: Fitted on the readings of the training part.
        train: Windows whose targets all lie in the training part; their history may not reach before the series, nor end
            in a gap.
        validation: The same of the second part; history may reach back into training.
        test: The same of the last part.
        train_end: Step at which training ends.
        validation_end: Step at which testing begins.
    """

    scaler: Scaler
    train: Ints
    validation: Ints
    test: Ints
    train_end: int
    validation_end: int


def split_series(series: Series, options: TrafficOptions, step: int = HOUR) -> SplitSeries:
    """Split a series by the shares: test last, validation before it; short series hold nothing out.

    Parts begin at the midnight nearest to the exact share (the earlier of two), unless that would leave one of them empty.

    Args:
        series: T readings.
        options: Shares, history and horizon; a window is `history` steps in and `horizon` steps out.
        step: Seconds between readings.
    """
    train_end, validation_end = _ends(series, options, step)
    length = len(series.values)
    scaler = _fitted(series, train_end)
    bounds = ((0, train_end), (train_end, validation_end), (validation_end, length))
    train, validation, test = (_starts(*part, options, series.observed) for part in bounds)
    return SplitSeries(scaler, train, validation, test, train_end, validation_end)


def _ends(series: Series, options: TrafficOptions, step: int) -> tuple[int, int]:
    """Return the ends of training and validation: at midnights, or by shares rounded down."""
    length = len(series.values)
    held = (options.validation_share, options.test_share)
    offset = int(series.start.astype("datetime64[s]").astype(np.int64)) % DAY // step
    train, validation = (_midnight(length * (1 - share), offset, DAY // step) for share in (sum(held), held[1]))
    if 0 < train <= validation < length and (train < validation or not held[0]):
        return train, validation
    test = min(floor_share(held[1], length), length - 1)
    return length - test - min(floor_share(held[0], length), length - test - 1), length - test


def _midnight(exact: float, offset: int, day: int) -> int:
    """Return the step nearest to `exact` at which a day begins; the first step is at `offset` of its day."""
    return math.ceil((exact + offset) / day - 0.5 - 1e-9) * day - offset


def _fitted(series: Series, end: int) -> Scaler:
    """Return mean and deviation of the observed training readings; of all readings if none is observed."""
    values, observed = series.values[:end], series.observed[:end]
    used = np.where(observed | ~observed.any(axis=0), values, np.nan)
    mean, std = np.nanmean(used, axis=0), np.nanstd(used, axis=0)
    constant = std <= 1e-9 * np.abs(mean)
    return Scaler(mean, np.where(constant, 1.0, std))


def _starts(begin: int, end: int, options: TrafficOptions, observed: Flags) -> Ints:
    """Return windows with targets in [begin, end) whose history ends with a reading."""
    first = np.arange(max(begin, options.history), end - options.horizon + 1, dtype=np.int64)
    return first[observed[first - 1].all(axis=1)]
