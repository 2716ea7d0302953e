"""Readers of the traffic study's data, up to an origin."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
from pyarrow import scalar
from pyarrow.compute import less
from pyarrow.csv import read_csv, write_csv

from client.tasks.traffic.data.reader import read_series
from client.tasks.traffic.data.series import Sensors, Series
from client.tasks.traffic.data.sumo import MEASURES, record_sumo
from studies.traffic.sets import Setting


def read(setting: Setting, data: Path, cache: Path, origin: int = 0) -> Sensors:
    """Read a set up to its k-th origin.

    Args:
        setting: The set.
        data: Folder of all data sets.
        cache: Folder in which a recorded set is kept.
        origin: Number of the origin; 0 is the end of the data.
    """
    return cut_end(READERS[setting.key](data, cache), origin * setting.back, setting.days)


def cut_end(whole: Sensors, back: int, days: int) -> Sensors:
    """Return the `days` days, or with 0 all days, that end `back` days before the last reading."""
    step = whole.vocabulary.step_seconds
    end = max(series.times(step)[-1] for series in whole.units) - np.timedelta64(back, "D")
    since = end - np.timedelta64(days, "D") if days else min(series.start for series in whole.units) - 1
    return replace(whole, units=tuple(_between(series, since, end, step) for series in whole.units))


def _between(series: Series, since: np.datetime64, end: np.datetime64, step: int) -> Series:
    times = series.times(step)
    inside = (times > since) & (times <= end)
    return replace(series, start=times[inside][0], values=series.values[inside], observed=series.observed[inside])


def boroondara(folder: Path, cache: Path) -> Sensors:
    """Read 105 approaches with all 31 days of October 2006, hourly."""
    return read_series(folder / "vicroads-scats-boroondara-2006")


def ten_sites(folder: Path, cache: Path) -> Sensors:
    """Read 2,033 days of ten sites, hourly."""
    return read_series(folder / "vicroads-scats-10sites")


def sumo(folder: Path, cache: Path) -> Sensors:
    """Read one hour of 100 simulated streets, second by second; record it first if the cache lacks it.

    Raises:
        ConfigError: The recording is missing and SUMO is not installed.
    """
    path = cache / "sumo.csv"
    if not path.exists():
        record_sumo(path)
    return read_series(path, MEASURES)


def states(folder: Path, cache: Path) -> Sensors:
    """Read the counted vehicles of 51 states, in millions a day, from 2018 to June 2020."""
    table = read_csv(folder / "fhwa-state-daily" / "stateDaily_18_19_20_imputed_data.csv.gz")
    kept = table.select(["date", "FIPS.State.Code", "stateTraffic"]).rename_columns(["timestamp", "site", "volume"])
    path = cache / "states.csv"
    write_csv(kept.filter(less(kept["timestamp"], scalar(date(2020, 7, 1)))), path)
    return read_series(path)


READERS: dict[str, Callable[[Path, Path], Sensors]] = {
    "boroondara": boroondara,
    "ten": ten_sites,
    "sumo": sumo,
    "fhwa": states,
}
