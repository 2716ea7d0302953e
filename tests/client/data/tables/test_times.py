"""Times in all forms, dates whose order is not settled, and day numbers of spreadsheets."""

from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow
import pytest

from client.data.tables.schema import CellError, Dates
from client.data.tables.table import Clock, to_times

NOON = 1717156800
"""12:00 of 31 May 2024 in UTC, by `date -u -d @1717156800`."""


def times(*cells: object, dates: Dates = "auto", clock: Clock = "utc", kind: object = None) -> list[float | None]:
    found: list[float | None] = to_times(pyarrow.array(cells, kind), dates, clock).to_pylist()
    return found


def refusal(*cells: object, dates: Dates = "auto", clock: Clock = "utc") -> tuple[list[bool], str, str]:
    with pytest.raises(CellError) as caught:
        times(*cells, dates=dates, clock=clock)
    return caught.value.wrong.tolist(), caught.value.problem, caught.value.remedy


@pytest.mark.parametrize(
    ("cell", "seconds"),
    [
        ("1396437466.94", 1396437466.94),
        ("1396437466940", 1396437466.94),
        ("1396437466940000", 1396437466.94),
        ("7", 7.0),
        ("2014-04-02T11:17:46.940Z", 1396437466.94),
        ("2014-04-02T11:17:46,940999999z", 1396437466.940999),
        ("2014-04-02 11:17:46", 1396437466.0),
        ("2014-04-02  11:17:46 UTC", 1396437466.0),
        ("2014-04-02T13:17:46+02:00", 1396437466.0),
        ("2014-04-02 13:17:46 +0200", 1396437466.0),
        ("2014-4-2 11:17", 1396437420.0),
        ("2014-04-02", 1396396800.0),
        ("2014/04/02 11:17:46", 1396437466.0),
        ("2.4.2014 11:17:46", 1396437466.0),
        ("02.04.2014", 1396396800.0),
    ],
)
def test_a_time(cell: str, seconds: float) -> None:
    """Expected by `date -u -d @1396437466`; alone, and among cells in other forms."""
    assert times(cell) == [pytest.approx(seconds, abs=1e-7)]
    mixed = times(cell, "", "1717156800", "NA", "2024-05-31T12:00Z", "2024-05-31 12:00")
    assert mixed == [pytest.approx(seconds, abs=1e-7), None, NOON, None, NOON, NOON]


@pytest.mark.parametrize(
    "cell",
    ["2024-05-31 12:00", "2024-05-31T12:00:00Z", "2024-05-31 12:00:00.9+05:30", "31.05.2024 12:00", "1717156800"],
)
def test_a_local_clock_drops_the_offset(cell: str) -> None:
    assert int(times(cell, clock="wall")[0] or 0) == NOON


def test_slashed_dates_are_decided_over_the_whole_column() -> None:
    assert times("1/5/2024", "31/5/2024 12:00") == [NOON - 30.5 * 86_400, NOON]
    assert times("5/1/2024", "5/31/2024 12:00", "05-31-2024 12:00:00") == [NOON - 30.5 * 86_400, NOON, NOON]
    assert times("5/6/2024", dates="dmy") == [1717545600]
    assert times("5/6/2024", "2024-05-31 12:00", dates="mdy") == [1714953600, NOON]


def test_dates_in_either_order_or_in_both_are_asked_about() -> None:
    remedy = "say --dates dmy or --dates mdy"
    assert refusal("1/5/2024", "2024-05-31") == ([True, False], "may begin with the day or the month", remedy)
    both = refusal("31/5/2024", "5/31/2024")
    assert both == ([True, True], "stands among dates in another order", remedy)
    assert refusal("31/5/2024", "5/31/2024", dates="dmy")[:2] == ([False, True], "is not a time")


def test_day_numbers_of_a_spreadsheet_are_recognised_and_read_on_request() -> None:
    """45443.5 is noon of 31 May 2024 by LibreOffice."""
    remedy = "say --dates excel, or --dates unix for seconds since 1970"
    problem = "looks like an Excel date, 2024-05-31"
    assert refusal("45443.5", "", "20000") == ([True, False, True], problem, remedy)
    assert to_times(pyarrow.array([45443.5, None]), "excel", "utc").to_pylist() == [NOON, None]
    assert to_times(pyarrow.array([45443.5]), "unix", "utc").to_pylist() == [45443.5]
    assert times("45443", "80001") == [45443, 80001], "a running number"


@pytest.mark.parametrize(
    ("cells", "wrong"),
    [
        (("9024-05-31", "2024-05-31"), [True, False]),
        (("1989-12-31",), [True]),
        (("2101-01-01T00:00Z",), [True]),
        (("4133980800", "7"), [True, False]),
        (("1e18",), [True]),
        (("631151999000",), [True]),
    ],
)
def test_years_outside_1990_to_2100_are_refused(cells: tuple[str, ...], wrong: list[bool]) -> None:
    found = refusal(*cells)
    assert found == (wrong, "lies outside the years 1990 to 2100", "correct it, or leave the row out")
    assert times("1990-01-01", "2100-12-31T23:59:59Z", "4133980799") == [631152000, 4133980799, 4133980799]


def test_running_numbers_are_an_order_but_not_of_a_local_clock() -> None:
    assert times("0", "1", "20000", "631151999") == [0, 1, 20000, 631151999]
    assert refusal("1", "2024", clock="wall")[0] == [True, True]


@pytest.mark.parametrize(
    "cell",
    [
        *("noon", "2014-13-01", "2023-02-29 13:00", "2024-05-31 25:00", "2024-05-31 12:60", "31.06.2024", "31.05.24"),
        *(
            "2024-05",
            "2024-W22-5",
            "12:00",
            "1717156800s",
            "31/05/2024x",
            "May 31, 2024",
            "inf",
            "2024-05-31 12:00+2x:00",
        ),
    ],
)
def test_what_is_no_time(cell: str) -> None:
    remedy = "write ISO 8601 such as 2014-04-07T10:51:09Z, or leave the row out"
    assert refusal("2024-05-31", cell, "", "7") == ([False, True, False, False], "is not a time", remedy)


@pytest.mark.parametrize(
    ("dates", "fine", "other"),
    [
        ("iso", "2024-05-31 12:00", "1717156800"),
        ("iso", "2024-05-31 12:00", "31.05.2024"),
        ("dmy", "31/05/2024 12:00", "7"),
    ],
)
def test_a_form_that_the_owner_names_is_the_only_one(dates: Dates, fine: str, other: str) -> None:
    assert times(fine, dates=dates) == [NOON]
    assert refusal(fine, other, dates=dates)[:2] == ([False, True], "is not a time")


def test_times_with_a_type_of_their_own() -> None:
    berlin = datetime(2024, 5, 31, 14, tzinfo=timezone(timedelta(hours=2)))
    zoned = pyarrow.timestamp("us", "+02:00")
    assert times(berlin, None, kind=zoned) == [NOON, None]
    assert times(berlin, kind=zoned, clock="wall") == [NOON + 7200]
    assert times(datetime(2024, 5, 31, 12), kind=pyarrow.timestamp("ns")) == [NOON]
    assert times(date(2024, 5, 31)) == [NOON - 43_200]
    assert times(datetime(2024, 5, 31, 12, tzinfo=UTC), dates="excel") == [NOON], "whatever the owner says of others"
    assert times(1717156800, 1717156800_000, kind=pyarrow.int64()) == [NOON, NOON]
    with pytest.raises(CellError, match="lies outside"):
        times(datetime(1600, 1, 1))
