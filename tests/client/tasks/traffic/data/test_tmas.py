"""FHWA's station volumes in the three forms they were published in."""

import numpy as np
import pytest

from client.tasks.traffic.data.reader import read_series
from common.errors import DataError
from tests.support.files import Writer

HOURS = [f"hour_{hour:02d}" for hour in range(24)]
TITLES = ["record_type", "state_code", "f_system", "station_id", "travel_dir", "travel_lane", "year_record"]
TITLES += ["month_record", "day_record", "day_of_week"]


def row(volumes: list[int | str], station: str = "000050", lane: str = "1", direction: str = "3", day: int = 1) -> str:
    """Return a day of January 2015 in columns of fixed width; the first was a Thursday."""
    hours = "".join(f"{volume:05d}" if isinstance(volume, int) else f"{volume:5}" for volume in volumes)
    return f"3112U{station}{direction}{lane}1501{day:02d}{(day + 3) % 7 + 1}{hours}0"


def long_year(text: str) -> str:
    """Return the same row by the guide of 2013, which gives the year four digits."""
    return text[:13] + "20" + text[13:]


def named(text: str, upper: bool = False) -> str:
    """Return the same row with `|` between columns."""
    cells = [text[:1], text[1:3], text[3:5], text[5:11], text[11], text[12], "20" + text[13:15]]
    cells += [
        str(int(text[15:17])),
        str(int(text[17:19])),
        text[19],
        *(text[20 + 5 * k :][:5].strip() for k in range(24)),
    ]
    if upper:
        return "|".join(["V", *cells[1:10], "", "60", *cells[10:]])
    return "|".join(["V", *cells[1:], text[140]])


def in_form(form: str, rows: list[str]) -> list[str]:
    match form:
        case "fixed":
            return rows
        case "fixed, long year":
            return [long_year(one) for one in rows]
        case "named":
            return ["|".join([*TITLES, *HOURS, "restrictions"]), *(named(one) for one in rows)]
    titles = "|".join([*TITLES, "restrictions", "time_increment", *HOURS]).title()
    return [titles, *(named(one, upper=True) for one in rows)]


FORMS = ("fixed", "fixed, long year", "named", "named, capitals")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["DC_JAN_2015 (TMAS).VOL", "a.vol.gz"])
def test_lanes_and_directions_add_up(text: Writer, form: str, name: str) -> None:
    first, second, west = list(range(24)), [1000] * 24, [20000 + k for k in range(24)]
    rows = [row(first), row(second, lane="2"), row(west, direction="7"), row([5] * 24, station="00001A", day=2)]
    dataset = read_series(text(*in_form(form, rows), name=name))
    assert [one.name for one in dataset.units] == ["11-00001A", "11-000050"]
    assert dataset.units[1].start == np.datetime64("2015-01-01T00:00", "m")
    assert dataset.units[1].values[:, 0].tolist() == [21_000 + 2 * k for k in range(24)]
    assert dataset.units[0].start == np.datetime64("2015-01-02T00:00", "m")
    assert dataset.vocabulary.step_seconds == 3600
    assert dataset.notes == ()


@pytest.mark.parametrize("form", FORMS)
def test_an_hour_without_one_of_the_lanes_is_missing(text: Writer, form: str) -> None:
    """Lane 2 has no reading at 5, and no row on the second day; a station's lanes are those of the month."""
    gap: list[int | str] = [*range(5), "", *range(6, 24)]
    rows = [row(list(range(24))), row(gap, lane="2"), row([9] * 24, day=2)]
    rows += [row([50 + k for k in range(24)], day=3), row([50 + k for k in range(24)], lane="2", day=3)]
    dataset = read_series(text(*in_form(form, rows), name="a.vol"))
    series = dataset.units[0]
    assert (~series.observed).sum() == 25
    assert series.values[:6, 0].tolist() == [0, 2, 4, 6, 8, 10]
    assert series.values[48:, 0].tolist() == [100 + 2 * k for k in range(24)]


def test_a_row_for_all_lanes_counts_alone(text: Writer) -> None:
    rows = [row([7] * 24, lane="0"), row([3] * 24), row([4] * 24, lane="2"), row([1] * 24, direction="7")]
    assert (read_series(text(*rows, name="a.vol")).units[0].values == 8).all()


def test_a_lane_and_day_given_twice_counts_once(text: Writer) -> None:
    dataset = read_series(text(row([7] * 24), row([8] * 24), name="a.vol"))
    assert (dataset.units[0].values == 8).all()
    assert dataset.notes == ("1 rows of a lane and day that came again replaced by the later ones",)


def test_months_in_several_files_are_one_series(text: Writer) -> None:
    text(row([1] * 24, day=1), name="set/jan a.VOL")
    folder = text(row([2] * 24, day=2), name="set/jan b.VOL").parent
    assert read_series(folder).units[0].values[:, 0].tolist() == [1] * 24 + [2] * 24


BAD = row([5] * 24)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), "a.vol: the file is empty"),
        ((BAD, "", "S" + BAD[1:]), "line 3, column 'record_type': 'S' is not a traffic volume record"),
        ((BAD, BAD[:30] + "x" + BAD[31:]), "line 2, column 'hour_02': 'x0005' is not a number"),
        ((BAD[:15] + "13" + BAD[17:],), "line 1, column 'month_record': '13' is not in the calendar"),
        ((BAD[:13] + "  " + BAD[15:],), "line 1, column 'year_record': empty cell"),
        (
            ("record_type|state_code|station_id", "V|1|2"),
            "line 1, column 'travel_dir': no column 'travel_dir'; the table needs 32 columns",
        ),
        (("|".join([*TITLES, *HOURS]),), "has a header but no rows"),
        (("|".join([*TITLES, *HOURS]), "", "V|1"), "line 3: 2 cells, but the first line has 34"),
        (
            ("|".join([*TITLES, *HOURS]), "", named(BAD)[:-2], "X" + named(BAD)[1:-2]),
            "line 4, column 'record_type': 'X' is not a traffic volume record",
        ),
    ],
)
def test_bad_input_is_named(text: Writer, lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_series(text(*lines, name="a.vol"))
    assert message in str(caught.value)
