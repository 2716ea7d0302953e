"""Times in all forms, dates whose order is not settled, and day numbers of spreadsheets."""

from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow
import pytest

from client.data.tables.schema import CellError, Clock, Dates
from client.data.tables.times import to_times

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
        ("2014-W14-3", 1396396800.0),
        ("2014W14", 1396224000.0),
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
        (("4133980800", "7"), [True, True]),
        (("5e18",), [True]),
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
        *("noon", "2014-13-01", "2023-02-29 13:00", "2024-05-31 25:00", "2024-05-31 12:60", "31.06.2024"),
        *("2024-05", "2024-W60-5", "12:00", "1717156800s", "31/05/2024x"),
        *("May 32, 2024", "inf", "2024-05-31 12:00+2x:00"),
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


DAY_ONE, HOUR = 1709251200, 3600
"""1 March 2024 in UTC, by `date -u -d 2024-03-01 +%s`."""


@pytest.mark.parametrize(
    ("cell", "hours"),
    [
        *(("20240301", 0), ("2024030109", 9), ("2024030124", 24), ("202403010930", 9.5), ("20240301093000", 9.5)),
        *(("20240301T093000Z", 9.5), ("20240301T0930", 9.5), ("20240301 09:30", 9.5), ("2024-03-01T103000+0100", 9.5)),
        *(("1709251200000000000", 0), ("1709251200000000", 0), ("1709251200000", 0), ("1709251200", 0)),
        *(("1 Mar 2024 09:30", 9.5), ("March 1st, 2024 3:30 PM", 15.5), ("01-Mar-24", 0), ("1. März 2024", 0)),
        *(
            ("Fri, 01 Mar 2024 10:30:00 +0100", 9.5),
            ("01/Mar/2024:01:30:00 -0800", 9.5),
            ("Fri Mar  1 09:30:00 UTC 2024", 9.5),
        ),
        *(("2024-03-01 12:30 AM", 0.5), ("2024-03-01 12:30 PM", 12.5), ("1.3.2024 3:30:00 p.m.", 15.5)),
        *(("2024-03-01 24:00", 24), ("2024-02-29T24:00:00", 0), ("01.03.24 09:30", 9.5)),
        *(("2024-03-01 10:30 CET", 9.5), ("2024-03-01 04:30:00 EST", 9.5), ("2024-03-01 10:30 Europe/Paris", 9.5)),
        *(("2024-03-01T10:30:00+01:00[Europe/Paris]", 9.5), ("2024-03-01 9", 9)),
    ],
)
def test_a_further_form_is_read_alone_and_in_a_column_of_it(cell: str, hours: float) -> None:
    assert times(cell) == [DAY_ONE + hours * HOUR]
    assert times(*[cell, None] * 6_000) == [DAY_ONE + hours * HOUR, None] * 6_000


def test_the_whole_column_decides_on_numbers() -> None:
    assert refusal("20240301", "20241301", *["20240302"] * 20)[0] == [False, True, *[False] * 20]
    assert refusal("0", "1709251200", "1709251201")[0] == [True, False, False], "no order among dates"
    remedy = "say --dates order or --dates unix"
    assert refusal("1", "2", "1709251200")[0::2] == ([False, False, True], remedy)
    assert times(20240301, 20240302, kind=pyarrow.int64()) == [DAY_ONE, DAY_ONE + 24 * HOUR]
    first, second = times(1709251200, 1709251201, dates="order")
    assert first is not None
    assert second is not None
    assert first < second < 631152000


def test_years_of_two_digits_have_the_order_that_the_whole_column_allows() -> None:
    assert times("01/03/24", "31/03/24") == [DAY_ONE, DAY_ONE + 30 * 24 * HOUR]
    assert times("03/01/24", "03/31/24 9:30 AM") == [DAY_ONE, DAY_ONE + 30 * 24 * HOUR + 9.5 * HOUR]
    assert times("24/03/01", "24/03/31", "24/04/02") == [DAY_ONE, DAY_ONE + 30 * 24 * HOUR, DAY_ONE + 32 * 24 * HOUR]
    assert refusal("01/03/24")[2] == "say --dates dmy or --dates mdy, or --dates ymd"
    assert times("01/03/24", dates="dmy") == times("24/03/01", dates="ymd") == [DAY_ONE]
