"""The data of the traffic tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from client.tasks.traffic.data.reader import read_series
from client.tasks.traffic.data.series import Sensors, Series
from client.tasks.traffic.data.sumo import MEASURES, record_sumo
from common.options import Scalar


@dataclass(frozen=True)
class Setting:
    """One data set as it is trained on.

    Args:
        key: Short name, also of cached results.
        title: In the table.
        about: What was cut, in a sentence.
        cohort: Share of the clients asked a round.
        uploads: Updates that a client is asked for a round, times rounds: the same for every method.
        read: Reads all of it, from the folder of all data sets or from the cache.
        days: Days up to the origin that are used; 0 for all.
        back: Days between two origins, the first being the end of the data.
        origins: Number of them.
        task: Options of the task that the set asks for.
    """

    key: str
    title: str
    about: str
    cohort: float
    uploads: int
    read: Callable[[Path, Path], Sensors]
    days: int = 0
    back: int = 0
    origins: int = 1
    task: Mapping[str, Scalar] = field(default_factory=dict)

    def dataset(self, folder: Path, cache: Path, origin: int = 0) -> Sensors:
        """The data up to the k-th origin."""
        return ending(self.read(folder, cache), origin * self.back, self.days)


def ending(whole: Sensors, back: int, days: int) -> Sensors:
    """The `days` days, or with 0 all, that end so many days before the last reading."""
    step = whole.vocabulary.step_seconds
    end = max(series.times(step)[-1] for series in whole.units) - np.timedelta64(back, "D")
    since = end - np.timedelta64(days, "D") if days else min(series.start for series in whole.units) - 1
    return replace(whole, units=tuple(_between(series, since, end, step) for series in whole.units))


def _between(series: Series, since: np.datetime64, end: np.datetime64, step: int) -> Series:
    times = series.times(step)
    kept = (times > since) & (times <= end)
    return replace(series, start=times[kept][0], values=series.values[kept], observed=series.observed[kept])


def boroondara(folder: Path, cache: Path) -> Sensors:
    """105 approaches with all 31 days of October 2006, hourly."""
    return read_series(folder / "vicroads-scats-boroondara-2006")


def ten_sites(folder: Path, cache: Path) -> Sensors:
    """2,033 days of ten sites, hourly."""
    return read_series(folder / "vicroads-scats-10sites")


def sumo(folder: Path, cache: Path) -> Sensors:
    """An hour of 100 simulated streets, second by second; recorded once.

    Raises:
        ConfigError: It was not, and SUMO is not installed.
    """
    path = cache / "sumo.csv"
    if not path.exists():
        record_sumo(path)
    return read_series(path, MEASURES)


BOROONDARA = Setting(
    "boroondara",
    "Boroondara, 105 approaches as clients",
    "31 days, 25 / 3 / 3 for training, validation and test: the test is Sunday to Tuesday, so it says little about weeks.",
    0.1,
    40,
    boroondara,
    back=3,
    origins=3,
)
TEN = Setting(
    "ten",
    "Ten sites, last 365 days",
    "292 / 36 / 37 days. Outages of three hours or more are filled and count neither in errors nor in obedience.",
    1.0,
    40,
    ten_sites,
    days=365,
    back=91,
    origins=4,
)
SUMO = Setting(
    "sumo",
    "SUMO, 100 streets as clients",
    "`fedloom data sumo`: six measures a second for an hour. 40 seconds in, the next 10 out (the paper's window, shifted by"
    " one, shows 39 of the 40 seconds it asks for). The property is template 4: number of vehicles less occupancy, each in its"
    " own deviations.",
    0.1,
    40,
    sumo,
    task={
        "history": 40,
        "horizon": 10,
        "slice": "latest",
        "property": "difference",
        "pair": "vehicle_number,occupancy",
    },
)
SETTINGS = (BOROONDARA, TEN, SUMO)
