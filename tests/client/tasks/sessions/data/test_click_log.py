"""Click logs: names of columns, times, and where a session ends."""

from pathlib import Path

import pytest

from client.data.tables.reader import read_table
from client.tasks.sessions.data.log import DAY, log_of_clicks
from client.tasks.sessions.data.reader import read_visitors
from client.tasks.sessions.data.visitors import SCHEMA
from tests.support.files import Writer


def sessions(path: Path) -> dict[str, list[str]]:
    dataset = read_visitors(path)
    return {
        v.name: ["".join(dataset.vocabulary.items[k] for k in session.tolist()) for session in v.sessions]
        for v in dataset.units
    }


@pytest.mark.parametrize("header", ["user,item,timestamp", "UserId,ItemId,Time", "visitorid,item_id,TIMESTAMP"])
def test_columns_may_be_spelt_as_others_do(text: Writer, header: str) -> None:
    times = {"ann,a": 0, "ann,b": 1800, "ann,c": 3601, "ann,d": 3602, "bob,x": 3, "bob,y": 2}
    path = text(header, *(f"{click},{1704067200 + seconds}" for click, seconds in times.items()), name="a.csv")
    assert sessions(path) == {"ann": ["ab", "cd"], "bob": ["yx"]}, "a gap of more than half an hour parts sessions"


@pytest.mark.parametrize("mark", ["\t", ";", ","])
def test_delimiters(text: Writer, mark: str) -> None:
    rows = (("session", "item"), ("s", "a"), ("s", "b"))
    assert sessions(text(*map(mark.join, rows), name="a.tsv")) == {"group-00001": ["ab"]}


def test_a_day_ends_at_midnight_utc(text: Writer) -> None:
    rows = (
        "ann,a,2020-01-01T08:00:00Z",
        "ann,b,2020-01-02T00:59:59+01:00",
        "ann,c,2020-01-02 00:00:00",
        "ann,d,1577923201",
    )
    table = read_table(text("user,item,time", *rows, name="a.csv"), SCHEMA)
    assert log_of_clicks(table, DAY).session.tolist() == [0, 0, 1, 1]


def test_users_share_names_of_sessions(text: Writer) -> None:
    rows = ("bob,a,1,s", "ann,b,2,s", "bob,c,3,s", "ann,d,4,s", "ann,e,0,r", "ann,f,9,r")
    assert sessions(text("user,item,time,session", *rows, name="a.csv")) == {"ann": ["ef", "bd"], "bob": ["ac"]}


def test_without_times_the_order_of_the_file_counts(text: Writer) -> None:
    assert sessions(text("session,item", "2,a", "1,c", "2,b", "1,d", name="a.csv")) == {"group-00001": ["ab", "cd"]}


def test_a_quoted_item_may_hold_the_delimiter(text: Writer) -> None:
    dataset = read_visitors(text("session,item", '1,"cup, blue"', "1, tea ", name="a.csv"))
    assert dataset.vocabulary.items == ("cup, blue", "tea")


def test_test_sessions_of_a_split_column_belong_to_their_user(text: Writer) -> None:
    rows = (
        "ann,a,1,train",
        "ann,b,2,train",
        "ann,b,3,test",
        "ann,a,4,test",
        "ann,b,5,test",
        "bob,a,1,test",
        "bob,b,2,test",
    )
    ann, bob = read_visitors(text("user,item,time,split", *rows, name="a.csv")).units
    assert [(case.prefix.tolist(), case.target) for case in ann.test] == [([1], 0), ([1, 0], 1)]
    assert (len(ann.sessions), len(bob.sessions), len(bob.test)) == (1, 0, 1)
