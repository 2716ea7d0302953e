"""Public sets in the form of their owners, by small files of exactly that form."""

import pytest

from client.tasks.sessions.data.reader import (
    DIGINETICA,
    GOWALLA,
    LASTFM,
    RETAILROCKET,
    YOOCHOOSE,
    Layout,
    layout_of,
    read_visitors,
)
from client.tasks.sessions.data.visitors import Visits
from common.errors import DataError
from tests.support.files import Writer

DIGINETICA_HEADER = "sessionId;userId;itemId;timeframe;eventdate"
RETAIL_HEADER = "timestamp,visitorid,event,itemid,transactionid"


def sessions(dataset: Visits) -> dict[str, list[str]]:
    items = dataset.vocabulary.items
    return {v.name: [" ".join(items[k] for k in session.tolist()) for session in v.sessions] for v in dataset.units}


def yoochoose() -> list[str]:
    """Sessions 1 to 5, one a day from 1 April, each 11 22; 3 also clicks on a rare item; 6 is a week later."""
    rows = [
        f"{day},2014-04-0{day}T10:5{minute}:09.868Z,{item},0"
        for day in range(1, 6)
        for minute, item in ((1, 11), (2, 22))
    ]
    return [
        *rows,
        "3,2014-04-03T10:55:00.000Z,33,S",
        "6,2014-04-12T08:00:00.000Z,22,0",
        "6,2014-04-12T08:00:01.000Z,11,0",
    ]


@pytest.mark.parametrize("name", ["yoochoose-clicks.dat", "yoochoose-clicks.dat.gz", "any.txt"])
def test_yoochoose(text: Writer, name: str) -> None:
    """The last day is the test part; the latest 1/64 of five examples is the last session."""
    dataset = read_visitors(text(*yoochoose(), name=name))
    assert sessions(dataset) == {"group-00001": ["11 22"]}
    assert [(case.prefix.tolist(), case.target) for case in dataset.units[0].test] == [([1], 0)], "22 and then 11"
    assert dataset.notes == ("9 clicks left out by the rules for this published set",)


def test_diginetica(text: Writer) -> None:
    """Clicks in order of their timeframe; users are ignored; the last seven days are the test part."""
    rows = [
        f"{day};NA;{item};{frame};2016-05-{day:02d}" for day in range(1, 6) for item, frame in (("b", 900), ("a", 52))
    ]
    folder = text(
        DIGINETICA_HEADER, *rows, "9;7;a;1;2016-05-12", "9;7;b;2;2016-05-12", name="set/train-item-views.csv"
    ).parent
    dataset = read_visitors(folder, group=3)
    assert sessions(dataset) == {"group-00001": ["a b"] * 3, "group-00002": ["a b"] * 2}
    assert sum(len(visitor.test) for visitor in dataset.units) == 1


def test_gowalla(text: Writer) -> None:
    """Newest first, cut by user and day; days of more than 20 check-ins are left out, users without a session too."""
    rows = [f"2\t2010-10-01T{hour:02d}:00:00Z\t30.2\t-97.7\t{hour}" for hour in reversed(range(21))]
    rows += ["0\t2010-10-19T00:10:00Z\t30.2\t-97.7\t5", "0\t2010-10-18T23:55:27Z\t30.2\t-97.7\t6"]
    rows += ["0\t2010-10-18T22:17:43Z\t30.2\t-97.7\t7", "1\t2010-10-17T23:42:03Z\t30.2\t-97.7\t7"]
    assert sessions(read_visitors(text(*rows, name="set/loc-gowalla_totalCheckins.txt.gz").parent)) == {"0": ["7 6"]}


def test_lastfm(text: Writer) -> None:
    """Items are artists, windows are of eight hours; plays without an artist's id are skipped."""
    plays = (("23:08:57Z", "a1"), ("16:10:00Z", "a2"), ("15:59:00Z", "a3"), ("15:58:00Z", "a1"), ("09:00:00Z", ""))
    rows = [f'user_000001\t2009-05-04T{time}\t{artist}\t"Deep; Dish\t\tFuck, Me Im Famous' for time, artist in plays]
    dataset = read_visitors(text(*rows, name="userid-timestamp-artid-artname-traid-traname.tsv"))
    assert sessions(dataset) == {"user_000001": ["a1 a3", "a2 a1"]}
    assert dataset.notes[0] == "1 row without a click on a known item skipped"


def test_retailrocket(text: Writer) -> None:
    """Views only, in milliseconds; items need five users; clicks more than half an hour apart are two sessions."""
    views = [
        f"{1433221332117 + 1000 * k},{user},view,{item},{''}" for user in range(5) for k, item in enumerate((10, 20))
    ]
    rare = [f"{1433221332117 + 1000 * k},0,view,30," for k in range(5, 15)]
    later = [
        "1433229999000,0,view,20,",
        "1433229999500,0,view,10,",
        "1433230000000,0,addtocart,20,",
        "1433230000001,9,transaction,20,4000",
    ]
    dataset = read_visitors(text(RETAIL_HEADER, *later, *views, *rare, name="set/events.csv").parent)
    assert sessions(dataset) == {"0": ["10 20", "20 10"], **{str(user): ["10 20"] for user in range(1, 5)}}


@pytest.mark.parametrize(
    ("line", "layout"),
    [
        ("1,2014-04-07T10:51:09.277Z,214536502,0", YOOCHOOSE),
        ("0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847", GOWALLA),
        ("user_000001\t2009-05-04T23:08:57Z\tf1b1cf71\tDeep Dish\t\tFuck Me Im Famous", LASTFM),
        (DIGINETICA_HEADER.replace(";", "\t"), DIGINETICA),
        ("session_id\tuser_id\titem_id\ttimeframe\teventdate", DIGINETICA),
        (RETAIL_HEADER.replace(",", "\t"), RETAILROCKET),
        ("user\titem\ttimestamp", None),
        ("1\t2\t3\t4", None),
    ],
)
def test_a_published_log_is_known_by_its_first_line(line: str, layout: Layout | None) -> None:
    assert layout_of(line.split("\t" if "\t" in line else ",")) is layout


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("1,2014-04-07T10:51:09Z,5,0", "1,yesterday,6,0"), "line 2, column 'timestamp': 'yesterday' is not a time"),
        (("1,2014-04-07T10:51:09Z,5,0", "1,2014-04-07T10:51:09Z,6"), "line 2: 3 cells, but the first line has 4"),
        (("1,2014-04-07T10:51:09Z,5,0", ",2014-04-07T10:51:09Z,6,0"), "line 2, column 'session': empty cell"),
        ((DIGINETICA_HEADER, "1;NA;2;soon;2016-05-09"), "line 2, column 'timeframe': 'soon' is not a number"),
        ((RETAIL_HEADER, "1,2,addtocart,3,", "noon,2,view,3,"), "line 3, column 'timestamp': 'noon' is not a time"),
    ],
)
def test_bad_lines_are_named(text: Writer, lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_visitors(text(*lines, name="a.csv"))
    assert message in str(caught.value)
