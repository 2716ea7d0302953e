"""Forms that the engine settles by itself are reported with a cell and its value."""

from collections.abc import Callable

import pytest

from client.data.summary import aliases_of, decisions, ignored_columns, separator_of
from client.data.tables.reader import read_table
from client.data.tables.schema import Dates, Dialect
from client.data.tables.table import Table
from client.tasks.ratings.data.raters import SCHEMA
from deploy.data.check import check_data
from tests.support.files import Writer


@pytest.fixture
def table(text: Writer) -> Callable[..., Table]:
    """Read ratings with these cells of rating and date."""

    def read(rating: str, date: str, dates: Dates = "auto") -> Table:
        return read_table(text("user;item;rating;date", f"ann;tea;{rating};{date}"), SCHEMA, Dialect(dates=dates))

    return read


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("4,5", "decimal comma ('4,5' is 4.5)"),
        ("1.234,5", "decimal comma ('1.234,5' is 1234.5)"),
        ("1,234.5", "decimal point ('1,234.5' is 1234.5)"),
    ],
)
def test_a_decimal_mark_is_reported_with_a_cell(cell: str, said: str, table: Callable[..., Table]) -> None:
    assert list(decisions(table(cell, ""), SCHEMA)) == [f"column 'rating': {said}"]


@pytest.mark.parametrize(
    ("cell", "dates", "said"),
    [
        ("31/05/2024", "auto", "day before month ('31/05/2024' is 2024-05-31)"),
        ("05/31/2024", "auto", "month before day ('05/31/2024' is 2024-05-31)"),
        ("31.5.2024", "auto", "day before month ('31.5.2024' is 2024-05-31)"),
        ("2024-05-31T13:00Z", "auto", "ISO 8601"),
        ("1396867869", "auto", "Unix seconds ('1396867869' is 2014-04-07 10:51:09)"),
        ("1396867869000", "auto", "Unix milliseconds ('1396867869000' is 2014-04-07 10:51:09)"),
        ("7", "auto", "numbers that give the order of rows"),
        ("45443.5", "excel", "Excel dates ('45443.5' is 2024-05-31 12:00:00)"),
    ],
)
def test_a_form_of_dates_is_reported_with_a_cell(
    cell: str, dates: Dates, said: str, table: Callable[..., Table]
) -> None:
    assert list(decisions(table("4", cell, dates), SCHEMA)) == [f"column 'date': {said}"]


def test_separator_aliases_and_ignored_columns_are_reported(text: Writer) -> None:
    found = read_table(text("USER\tMovie ID\tstars\tshop", "ann\ttea\t4\tx"), SCHEMA)
    assert separator_of(found) == "tab"
    assert aliases_of(found) == {"Movie ID": "item", "stars": "rating"}, "case alone is no alias"
    assert ignored_columns(found) == ["shop"]


@pytest.mark.parametrize(("date", "said"), [("7", ""), ("2024-05-31", "2024-05-31")])
def test_an_order_of_rows_is_no_range_of_dates(date: str, said: str, text: Writer) -> None:
    report = check_data("ratings", str(text("user;item;rating;date", f"ann;tea;4;{date}")))
    assert (report.first, report.last) == (said, said)
