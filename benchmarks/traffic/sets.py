"""The data of the traffic table."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from client.data.traffic.reader import read_series
from client.data.traffic.series import Dataset, Series

YEAR = 365


@dataclass(frozen=True)
class Setting:
    """One data set as it is trained on.

    Args:
        key: Short name, also of cached results.
        title: In the table.
        about: What was cut, in a sentence.
        cohort: Share of the clients asked a round.
        uploads: Updates that a client is asked for a round, times rounds: the same for every method.
        read: Reads it from the folder of all data sets.
    """

    key: str
    title: str
    about: str
    cohort: float
    uploads: int
    read: Callable[[Path], Dataset]


def boroondara(folder: Path) -> Dataset:
    """105 approaches with all 31 days of October 2006, hourly."""
    return read_series(folder / "vicroads-scats-boroondara-2006")


def ten_sites(folder: Path) -> Dataset:
    """The last 365 days of ten sites, hourly."""
    whole = read_series(folder / "vicroads-scats-10sites")
    end = max(series.times(whole.measures.step_seconds)[-1] for series in whole.series)
    since = end - np.timedelta64(YEAR, "D")
    return replace(whole, series=tuple(_after(series, since, whole.measures.step_seconds) for series in whole.series))


def _after(series: Series, since: np.datetime64, step: int) -> Series:
    kept = series.times(step) > since
    start = series.times(step)[kept][0]
    return replace(series, start=start, values=series.values[kept], observed=series.observed[kept])


SETTINGS = (
    Setting(
        "boroondara",
        "Boroondara, 105 approaches as clients",
        "31 days, 25 / 3 / 3 for training, validation and test: the test is Sunday to Tuesday, so it says little about weeks.",
        0.1,
        40,
        boroondara,
    ),
    Setting(
        "ten",
        "Ten sites, last 365 days",
        "292 / 36 / 37 days. Outages of three hours or more are filled and count neither in errors nor in obedience.",
        1.0,
        40,
        ten_sites,
    ),
)
