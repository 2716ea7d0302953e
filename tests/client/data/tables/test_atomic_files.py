"""RecBole's atomic files are recognised by the types in their titles."""

import pytest

from client.data.read import find_own_tables, read_all
from client.data.tables.files import load
from client.data.tables.reader import detect_cells, read_table
from client.tasks.markets.data.markets import SCHEMA as MARKETS
from client.tasks.ratings.data.raters import SCHEMA
from client.tasks.sessions.data.visitors import SCHEMA as SESSIONS
from common.errors import DataError
from tests.support.files import Writer

HEADER = "user_id:token\titem_id:token\trating:float\ttimestamp:float"
ROWS = ("196\t242\t3\t881250949", "186\t302\t3.5\t891717742", "196\t377\t1\t881250950")


@pytest.mark.parametrize("name", ["ml.inter", "ml.tsv", "ml.txt", "ml"])
def test_titles_lose_their_types_whatever_the_suffix(name: str, text: Writer) -> None:
    table = read_table(text(HEADER, *ROWS, name=name), SCHEMA)
    assert table.columns["user"].to_pylist() == ["196", "186", "196"]
    assert table.columns["rating"].to_pylist() == [3.0, 3.5, 1.0]


def test_titles_of_which_one_has_no_type_stay_as_they_are(text: Writer) -> None:
    cells = detect_cells(load(text("a:token\tb", "1\t2")), SCHEMA)
    assert (list(cells.titles), cells.lists) == (["a:token", "b"], {})


@pytest.mark.parametrize("kind", ["token_seq", "float_seq"])
def test_a_list_where_one_value_is_needed_is_refused(kind: str, text: Writer) -> None:
    path = text(f"user_id:token\titem_id:{kind}\trating:float", "1\t2 3\t4", name="ml.inter")
    with pytest.raises(DataError) as caught:
        read_table(path, SCHEMA)
    said = f"of type {kind}, several values a cell, but 'item' needs one; name another column with --column item=TITLE"
    assert str(caught.value) == f"{path}, line 1, column 'item_id': {said}"


def test_a_list_that_is_not_read_does_no_harm(text: Writer) -> None:
    path = text("user_id:token\titem_id:token\tgenre:token_seq", "1\t2\ta b", name="ml.inter")
    assert len(read_table(path, MARKETS)) == 1


def test_a_list_of_items_is_a_session(text: Writer) -> None:
    path = text("session_id:token\tuser_id:token\titem_id_list:token_seq", "1\tann\ttea rum gin", name="ml.inter")
    assert read_table(path, SESSIONS).columns["items"].to_pylist() == ["tea rum gin"]
    [visitor] = read_all("sessions", str(path)).units
    assert [len(session) for session in visitor.sessions] == [3]


def test_interactions_are_ratings_sessions_and_markets(text: Writer) -> None:
    path = text(HEADER, *ROWS, name="ml.inter")
    (path.parent / "ml.item").write_text(
        "item_id:token\tmovie_title:token_seq\n242\tKolya\n302\tHigh Noon\n377\tBabe\n"
    )
    folder = str(path.parent)
    assert [rater.name for rater in read_all("ratings", folder).units] == ["186", "196"]
    assert [len(visitor.sessions) for visitor in read_all("sessions", folder).units] == [0, 1]
    markets = read_all("markets", folder)
    assert [market.name for market in markets.units] == ["ml"]
    assert markets.vocabulary.titles == ("Kolya", "High Noon", "Babe")
    assert find_own_tables("ratings", folder) == [path]


def test_splits_of_interactions_are_one_data_set(text: Writer) -> None:
    folder = text(HEADER, *ROWS, name="ml.train.inter").parent
    text(HEADER, "196\t51\t4\t1", name="ml.valid.inter")
    text(HEADER, "196\t52\t2\t1", "7\t242\t2\t1", name="ml.test.inter")
    raters = read_all("ratings", str(folder)).units
    assert [(rater.name, rater.splits.tolist()) for rater in raters] == [
        ("186", [0]),
        ("196", [0, 0, 1, 2]),
        ("7", [2]),
    ]
    assert find_own_tables("ratings", str(folder)) == [], "splits are no clients"
    with pytest.raises(DataError, match="would train on the split test"):
        read_all("markets", str(folder))


def test_splits_of_interactions_are_taken_as_they_are_by_sessions(text: Writer) -> None:
    train = text(HEADER, *ROWS, name="ml.train.inter")
    text(HEADER, "196\t377\t1\t881260000", "196\t242\t1\t881260001", name="ml.test.inter")
    visits = read_all("sessions", str(train.parent))
    assert [len(visitor.test) for visitor in visits.units] == [0, 1]
    assert find_own_tables("sessions", str(train.parent)) == []
