"""Titles however they are spelt, and which are said to be near."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from client.data.tables.files import Content
from client.data.tables.schema import CLOCK, Column, Dialect, TableSchema, find_names, match_titles, normalize_title
from client.data.tables.text import Delimited
from client.tasks.registry import CLIENT_TASKS
from common.errors import ConfigError, DataError

SCHEMA = TableSchema(
    (
        Column("timestamp", "time", ("time", "date")),
        Column("user_id", "text", ("visitor",)),
        Column("note", "text", required=False),
    )
)
NUMBERS = TableSchema((Column("timestamp", "time", ("time",)),), rest="numbers")


def headed(titles: Sequence[str]) -> Delimited:
    return Delimited(Content(Path("a.csv"), b""), titles, header_line=1)


def places(*titles: str, schema: TableSchema = SCHEMA, **columns: str) -> dict[str, int]:
    return match_titles(headed(titles), schema, Dialect(columns))


@pytest.mark.parametrize(
    "title", ["user_id", "User ID", "userid", " USER-ID ", '"user_id"', "\ufeffuser_id", "Visitor"]
)
def test_case_blanks_and_marks_do_not_count(title: str) -> None:
    assert places("Time", title) == {"timestamp": 0, "user_id": 1}
    assert find_names(["Time", title, "x"], SCHEMA, Dialect()) == {"timestamp", "user_id"}


def test_what_does_not_count_in_a_title() -> None:
    assert normalize_title("\ufeff User-ID\u00a0_'\"") == "userid"


def test_two_titles_of_one_column_are_refused_with_both_and_the_remedy() -> None:
    with pytest.raises(
        DataError, match="'Date' and 'Timestamp' both name the column timestamp; say --column timestamp=Date"
    ):
        places("Date", "Timestamp", "visitor")
    assert places("Time", "Date", "visitor") == {"timestamp": 1, f"timestamp{CLOCK}": 0, "user_id": 2}, (
        "two halves of a time"
    )
    assert places("Tag", "Uhr", "visitor", timestamp="Tag+Uhr") == {
        "timestamp": 0,
        f"timestamp{CLOCK}": 1,
        "user_id": 2,
    }
    assert places("Date", "Time", "visitor", timestamp="Time") == {"timestamp": 1, "user_id": 2}
    with pytest.raises(DataError, match=r"both name the column timestamp; rename one, or say --ignore \"time#2\""):
        places("time", "time", "visitor")


def test_a_missing_column_is_said_with_the_title_that_is_near() -> None:
    message = (
        "a.csv, line 1, column 'timestamp': no column 'timestamp'; 'Time stamp (UTC)' is near: rename it, or say"
        ' --column timestamp="Time stamp (UTC)"'
    )
    with pytest.raises(DataError) as caught:
        places("visitor", "Time stamp (UTC)")
    assert str(caught.value) == message
    assert places("visitor", "Time stamp (UTC)", timestamp="Time stamp (UTC)") == {"timestamp": 1, "user_id": 0}


def test_a_missing_column_without_a_near_title_is_said_with_what_the_table_needs() -> None:
    with pytest.raises(
        DataError, match="no column 'user_id'; the table needs timestamp and user_id: rename a column, or"
    ):
        places("time", "x")


def test_titles_are_cut_and_escaped() -> None:
    with pytest.raises(DataError) as caught:
        places("visitor", "time\x1bstamp" + "x" * 5)
    assert "'time\\x1bstampxxxxx' is near" in str(caught.value)
    with pytest.raises(DataError) as caught:
        places(*(f"{k}{'y' * 200}" for k in range(99)), timestamp="z" * 999)
    assert len(str(caught.value)) < 2_500


def test_a_title_that_the_owner_names_must_be_there() -> None:
    with pytest.raises(DataError, match="no column has the title 'Zeit' of --column timestamp; the titles are a, b"):
        places("a", "b", timestamp="Zeit")
    assert places("date", "visitor", timestamp="Zeit") == {"timestamp": 0, "user_id": 1}, (
        "as in another of several files"
    )


def test_further_columns_are_variables_that_the_owner_may_rename() -> None:
    found = places("Verkehr", "time", "speed", "", schema=NUMBERS, volume="Verkehr")
    assert found == {"timestamp": 1, "volume": 0, "speed": 2}
    with pytest.raises(DataError, match="column 'x': two columns have this name; rename one, or say --ignore \"x#2\""):
        places("x", "time", "x", schema=NUMBERS)
    assert places("x", "time", "x", schema=NUMBERS, y="x#2") == {"timestamp": 1, "x": 0, "y": 2}


@pytest.mark.parametrize("task", ["rules", "sessions", "ratings", "markets"])
def test_a_name_that_no_schema_has_is_refused(task: str) -> None:
    schema = CLIENT_TASKS[task].schema
    Dialect({schema.names[0]: "x"}).check(schema)
    with pytest.raises(ConfigError, match="--column nonsense=…: no such column; the task reads "):
        Dialect({"nonsense": "x"}).check(schema)
    Dialect({"nonsense": "x"}).check(NUMBERS)


@pytest.mark.parametrize(
    ("task", "titles", "names"),
    [
        (
            "rules",
            "home_id,trigger_device,trigger_device_id,trigger_state_id,action_id,action_device,action_device_id",
            7,
        ),
        ("sessions", "visitor,product,ts", 3),
        ("sessions", "session_id,item_id,datetime,user_id", 4),
        ("traffic", "date_time,detector,volume", 2),
        ("traffic", "Date Time,Station ID,volume", 2),
        ("ratings", "reviewerID,asin,overall,unixReviewTime", 4),
        ("ratings", "userId,movieId,stars,date", 4),
        ("markets", "source,target", 2),
        ("markets", "item1,item2,market", 3),
        ("markets", "userId,itemId,rate", 3),
    ],
)
def test_aliases_of_the_tasks(task: str, titles: str, names: int) -> None:
    schema = CLIENT_TASKS[task].schema
    assert len(find_names(titles.split(","), schema, Dialect())) == names
    match_titles(headed(titles.split(",")), schema, Dialect())
