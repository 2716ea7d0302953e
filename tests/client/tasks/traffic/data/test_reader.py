"""Tables in long form, the demo, folders, and bad input."""

from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from client.data.read import read_all
from client.tasks.traffic.data.reader import read_series
from client.tasks.traffic.data.series import Sensors
from client.tasks.traffic.task import TASK
from common.errors import DataError, VocabularyError
from common.tasks.traffic.vocabulary import SensorVariables, demo_variables
from tests.support.files import Writer

HEADER = "timestamp,site,volume"


def columns(dataset: Sensors) -> dict[str, list[float]]:
    """First variable of every series."""
    return {one.name: one.values[:, 0].tolist() for one in dataset.units}


def test_the_demo_or_some_of_it() -> None:
    assert len(read_all("traffic", "demo").units) == TASK.demo_units
    some = read_all("traffic", "demo:3-9", vocabulary=demo_variables(), seed=2)
    assert [one.name for one in some.units] == [f"site-0000{k}" for k in range(3, 9)]


def test_the_demo_has_its_own_measures_only() -> None:
    with pytest.raises(VocabularyError, match="embedded data do not fit"):
        read_all("traffic", "demo", vocabulary=SensorVariables(variables=("volume",), step_seconds=900))


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.tsv", "\t"), ("a.csv.gz", ","), ("a.csv", ";")])
def test_long_form(text: Writer, name: str, mark: str) -> None:
    lines = ("Timestamp,Site,volume,speed", "2024-05-31 13:00,b,5,50.5", "2024-05-31T14:00:00,b,6,", "2024-06-01,a,7,9")
    dataset = read_series(text(*(line.replace(",", mark) for line in lines), name=name))
    assert dataset.vocabulary == SensorVariables(variables=("volume", "speed"), step_seconds=3600)
    assert [one.name for one in dataset.units] == ["a", "b"]
    assert dataset.units[0].values.tolist() == [[7, 9]], "a site with a single reading is fine"
    assert dataset.units[0].start == np.datetime64("2024-06-01T00:00", "m")
    assert dataset.units[1].start == np.datetime64("2024-05-31T13:00", "m")
    assert dataset.units[1].values.tolist() == [[5, 50.5], [6, 50.5]]
    assert dataset.units[1].observed.tolist() == [[True, True], [True, False]]
    assert dataset.notes == ("1 of 6 readings (16.7%) were missing and interpolated",)


def test_without_a_site_the_file_names_the_series(text: Writer) -> None:
    text("time,volume", "2024-05-31 13:00,5", name="set/north.csv")
    folder = text("time,volume", "2024-05-31 13:00,6", name="set/east.tsv.gz").parent
    (folder / "readme.md").write_text("not data")
    assert columns(read_series(folder)) == {"east": [6], "north": [5]}


def test_the_same_site_in_several_files_is_one_series(text: Writer) -> None:
    text(HEADER, "2024-05-31 14:00,a,2", name="set/june.csv")
    folder = text(HEADER, "2024-05-31 13:00,a,1", name="set/may.csv").parent
    assert columns(read_series(folder)) == {"a": [1, 2]}


def test_the_federations_variables_in_its_order(text: Writer) -> None:
    path = text("timestamp,speed,volume", "2024-05-31 13:00,50,5")
    dataset = read_series(path, SensorVariables(variables=("volume", "speed")))
    assert dataset.units[0].values.tolist() == [[5, 50]]
    fewer = read_series(path, SensorVariables(variables=("volume",)))
    assert fewer.units[0].values.tolist() == [[5]]
    assert "1 variable skipped that the vocabulary lacks: 'speed'" in fewer.notes
    with pytest.raises(
        VocabularyError,
        match="not among the variables of the federation or of the first file, 'rain'; leave 'speed', 'volume' out",
    ):
        read_series(path, SensorVariables(variables=("rain",)))
    with pytest.raises(DataError, match="column 'rain': this variable is missing") as caught:
        read_series(path, SensorVariables(variables=("volume", "speed", "rain")))
    assert not isinstance(caught.value, VocabularyError)


def test_the_step_asked_for(text: Writer) -> None:
    """Volumes add up, speeds are averaged, by hand."""
    rows = [f"2024-05-31 {13 + k // 4}:{15 * (k % 4):02d},{k},{10 * k}" for k in range(8)]
    path = text("timestamp,volume,mean speed", *rows)
    both = ("volume", "mean speed")
    hourly, halves = (read_series(path, SensorVariables(variables=both, step_seconds=step)) for step in (3600, 1800))
    assert hourly.units[0].values.tolist() == [[0 + 1 + 2 + 3, 15], [4 + 5 + 6 + 7, 55]]
    assert halves.units[0].values.tolist() == [[1, 5], [5, 25], [9, 45], [13, 65]]
    assert hourly.notes == ("6 readings merged into readings of 60 minutes: volume added up, mean speed averaged",)


def test_coarser_data_have_their_own_step_or_none(text: Writer) -> None:
    path = text("date,volume", "2024-05-31,5", "2024-06-01,6", "2024-06-03,7")
    dataset = read_series(path)
    assert (dataset.vocabulary.step_seconds, columns(dataset)) == (86400, {"road": [5, 6, 6.5, 7]})
    with pytest.raises(DataError, match=r"1,?440 minutes apart, coarser than the step of 60 minutes"):
        read_series(path, SensorVariables(variables=("volume",)))


def test_hours_of_which_most_are_missing_stay_hours(text: Writer) -> None:
    """Sixty days, 70 % of their rows left out: nothing is averaged, and all gaps are counted."""
    kept = np.flatnonzero(np.random.default_rng(0).random(1440) < 0.3)
    times = np.datetime64("2025-01-06T00:00") + kept * np.timedelta64(60, "m")
    dataset = read_series(text(HEADER, *(f"{t},a,{k}" for t, k in zip(times.astype(str), kept, strict=True))))
    (one,) = dataset.units
    assert dataset.vocabulary.step_seconds == 3600
    np.testing.assert_array_equal(one.values[one.observed], kept)
    span = int(kept[-1] - kept[0]) + 1
    assert dataset.notes[0].startswith(f"{span - len(kept)} of {span} readings")


def test_hours_told_a_minute_early_or_late_are_not_refused(text: Writer) -> None:
    rng = np.random.default_rng(1)
    times = np.datetime64("2025-01-06T00:05:00") + 3600 * np.arange(500) + rng.integers(-60, 61, 500)
    dataset = read_series(
        text(HEADER, *(f"{t},a,{k}" for k, t in enumerate(times.astype(str)))), SensorVariables(variables=("volume",))
    )
    assert columns(dataset) == {"a": list(range(500))}


def test_order_and_repetition_are_put_right_and_counted(text: Writer) -> None:
    rows = ("2024-05-31 15:00,a,3", "2024-05-31 13:00,a,1", "2024-05-31 14:00,a,2", "2024-05-31 14:00,a,4")
    dataset = read_series(text(HEADER, *rows))
    assert columns(dataset) == {"a": [1, 3, 3]}
    assert dataset.notes[0] == "1 readings came after a later one and were put in order"
    assert dataset.notes[1].startswith("1 reading of a time already read")


def test_the_clock_set_back_is_averaged_and_set_forward_interpolated(text: Writer) -> None:
    """Berlin, 27 October and 31 March 2024; an offset from UTC does not move the sensor's own clock."""
    back = ("2024-10-27T01:00:00+02:00,a,1", "2024-10-27T02:00:00+02:00,a,2", "2024-10-27T02:00:00+01:00,a,4")
    dataset = read_series(text(HEADER, *back, "2024-10-27T03:00:00+01:00,a,5"))
    assert columns(dataset) == {"a": [1, 3, 5]}
    assert dataset.notes[0].startswith("1 reading of a time already read (a row given twice, or the clock set back)")
    forth = ("2024-03-31 00:00,a,0", "2024-03-31 01:00,a,1", "2024-03-31 03:00,a,3", "2024-03-31 04:00,a,4")
    dataset = read_series(text(HEADER, *forth))
    assert columns(dataset) == {"a": [0, 1, 2, 3, 4]}
    assert dataset.units[0].observed.ravel().tolist() == [True, True, False, True, True]
    assert dataset.notes == ("1 of 5 readings (20.0%) were missing and interpolated",)


def test_a_gap_longer_than_a_day_takes_the_same_hour_of_earlier_weeks(text: Writer) -> None:
    """A volume of day × 100 + hour, without the second Tuesday and Wednesday: the week before stands in."""
    at = np.datetime64("2024-01-01T00", "h") + np.arange(21 * 24)
    hour = np.arange(21 * 24)
    volume = 100 * (hour // 24) + hour % 24
    kept = ~np.isin(hour // 24, (8, 9))
    rows = (f"{t}:00,a,{v}" for t, v in zip(at[kept].astype(str), volume[kept], strict=True))
    dataset = read_series(text(HEADER, *rows))
    assert columns(dataset)["a"] == np.where(kept, volume, volume - 700).tolist()
    assert dataset.notes[0].endswith(
        "48 of them, in gaps longer than a day, are the mean of the same time of earlier weeks"
    )


def test_a_site_without_readings_of_a_variable_is_left_out(text: Writer) -> None:
    dataset = read_series(text(HEADER, "2024-05-31 13:00,a,", "2024-05-31 13:00,b,NA", "2024-05-31 13:00,c,1"))
    assert columns(dataset) == {"c": [1]}
    left_out = "2 sites without a reading of every variable left out"
    assert dataset.notes == (left_out, "2 readings of sites without a reading of every variable left out")


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    times = [datetime(2024, 5, 31, 13), datetime(2024, 5, 31, 14), datetime(2024, 5, 31, 15)]
    table = {"timestamp": times, "site": [7, 7, 7], "volume": [1.0, None, 3.5]}
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    assert columns(read_series(path)) == {"7": [1, 2.25, 3.5]}
    pyarrow.parquet.write_table(pyarrow.table({**table, "volume": [1.5, 2.0, float("inf")]}), path)
    with pytest.raises(DataError, match=r"a\.parquet, row 3, column 'volume': 'inf' is an infinite number"):
        read_series(path)


def test_an_unnamed_column_without_cells_is_no_variable(text: Writer) -> None:
    assert columns(read_series(text(HEADER + ",", "2024-05-31 13:00,a,1,"))) == {"a": [1]}
