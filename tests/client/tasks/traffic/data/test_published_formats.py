"""The real sets, by the counts that their SOURCE.md gives, and against slow reading of the files."""

import csv
import gzip
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from client.tasks.traffic.data.reader import read_series
from client.tasks.traffic.data.series import Sensors, Series
from common.errors import VocabularyError
from common.tasks.traffic.vocabulary import SensorVariables
from tests.support.files import folder_of

Read = Callable[[str], Sensors]

BOROONDARA = "vicroads-scats-boroondara-2006"
TEN = "vicroads-scats-10sites"
INTERSTATE = "metro-interstate-i94"
STATES = "fhwa-state-daily"


def rows_of(folder: Path) -> list[list[str]]:
    with gzip.open(next(folder.glob("*.csv.gz")), "rt") as file:
        return list(csv.reader(file))


def named(dataset: Sensors, name: str) -> Series:
    return next(one for one in dataset.units if one.name == name)


@pytest.mark.parametrize(
    ("name", "series", "length", "step", "start"),
    [
        (BOROONDARA, 105, 31 * 24, 60, "2006-10-01T00:00"),
        (TEN, 10, 2_033 * 24, 60, "2001-01-01T00:00"),
        (INTERSTATE, 1, 52_551, 60, "2012-10-02T09:00"),
        (STATES, 51, 3 * 365 + 1, 1440, "2018-01-01T00:00"),
    ],
)
def test_counts(shared: Read, name: str, series: int, length: int, step: int, start: str) -> None:
    """One of the ten sites is dead on its last day or first: the gap at the end is cut off."""
    dataset = shared(name)
    assert dataset.vocabulary == SensorVariables(variables=("volume",), step_seconds=60 * step)
    assert len(dataset.units) == series
    assert max(len(one.values) for one in dataset.units) == length
    assert min(one.start for one in dataset.units) == np.datetime64(start, "m")
    assert all((one.values >= 0).all() for one in dataset.units)
    assert [one.name for one in dataset.units] == sorted({one.name for one in dataset.units})


def test_boroondara_keeps_the_later_of_two_approaches_under_one_label(shared: Read) -> None:
    dataset = shared(BOROONDARA)
    rows = [row for row in rows_of(folder_of(BOROONDARA)) if row[:2] == ["4335", "HIGH_ST NE of CHARLES_ST"]]
    assert len(rows) == 62
    expected = np.array([row[10:106] for row in rows[31:]], float).reshape(-1, 4).sum(axis=1)
    assert (named(dataset, "4335 HIGH_ST NE of CHARLES_ST").values[:, 0] == expected).all()
    assert dataset.notes[:2] == (
        "34 of 139 approaches without all 31 days left out",
        "31 rows of an approach and day that came again replaced by the later ones",
    )
    assert all(one.observed.all() and len(one.values) == 744 for one in dataset.units)


def test_boroondara_by_quarters() -> None:
    dataset = read_series(folder_of(BOROONDARA), SensorVariables(variables=("volume",), step_seconds=900))
    first = rows_of(folder_of(BOROONDARA))[1]
    series = named(dataset, "0970 WARRIGAL_RD N of HIGH STREET_RD")
    assert series.values[:96, 0].tolist() == [float(cell) for cell in first[10:106]]


def test_the_ten_sites_without_their_outages(shared: Read) -> None:
    """Zeros of three hours and more, found by splitting texts; everything else is the sum of four quarters."""
    dataset = shared(TEN)
    quarters = np.array(rows_of(folder_of(TEN)), float)
    assert quarters.shape == (195_168, 10)
    sums = quarters.reshape(-1, 4, 10).sum(axis=1)
    missing = 0
    for number, one in enumerate(dataset.units):
        text = "".join("z" if value == 0 else "." for value in sums[:, number])
        dead = np.array([len(run) >= 3 for run in text.split(".") for _ in f"{run}."])[:-1] & (sums[:, number] == 0)
        missing += dead.sum()
        begin = int((one.start - np.datetime64("2001-01-01", "m")).astype(int)) // 60
        here = slice(begin, begin + len(one.values))
        assert dead[: here.start].all()
        assert dead[here.stop :].all()
        assert (one.observed[:, 0] == ~dead[here]).all()
        assert (one.values[one.observed] == sums[here, number][~dead[here]]).all()
    assert missing == 22_110
    assert dataset.notes[:2] == (
        "the days are not dated: the first, a Monday, is called 2001-01-01",
        "22110 hours in runs of 3 or more without a vehicle taken as missing (4.5%)",
    )


def test_the_interstate_has_an_hour_once(shared: Read) -> None:
    dataset, rows = shared(INTERSTATE), rows_of(folder_of(INTERSTATE))[1:]
    assert len(rows) == 48_204
    assert dataset.notes[0] == f"{48_204 - 40_575} further rows of an hour (its other weather) left out"
    series = dataset.units[0]
    assert series.observed.sum() == 40_575
    expected = {datetime.strptime(row[7], "%d/%m/%Y %H:%M"): float(row[8]) for row in rows}
    there = series.observed[:, 0]
    assert dict(zip(series.times(3600)[there].tolist(), series.values[there, 0].tolist(), strict=True)) == expected


def test_the_states_have_all_days_of_2019(shared: Read) -> None:
    dataset, rows = shared(STATES), rows_of(folder_of(STATES))[1:]
    assert sum(one.values.size for one in dataset.units) == len(rows) == 55_896
    assert all(one.observed.all() for one in dataset.units)
    alaska = [float(row[6]) for row in sorted(rows, key=lambda row: row[1]) if row[2] == "2"]
    assert named(dataset, "state-02").values[:, 0].tolist() == alaska


def test_a_federation_that_measures_something_else() -> None:
    with pytest.raises(VocabularyError, match="of the first file, 'speed'; leave 'volume' out"):
        read_series(folder_of(STATES), SensorVariables(variables=("speed",)))
