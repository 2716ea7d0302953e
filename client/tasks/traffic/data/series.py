"""Series of a client, and their tables in long form: time, site, variable, reading."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from client.data.dataset import Dataset
from client.data.tables.files import TABLES, plain_name, tables_in, write_private_csv
from client.data.tables.schema import Column, TableSchema
from common.arrays import Flags, Floats
from common.tasks.traffic.vocabulary import SensorVariables

SUFFIXES = (*TABLES, ".vol")
"""Suffixes of tables and of FHWA's station volumes."""

TIME, SITE = "timestamp", "site"

SCHEMA = TableSchema(
    columns=(
        Column(TIME, "time", ("time", "datetime", "date")),
        Column(SITE, "text", ("siteid", "sensor", "sensorid", "station", "stationid", "detector"), required=False),
    ),
    rest="numbers",
    clock="wall",
    unit=SITE,
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
