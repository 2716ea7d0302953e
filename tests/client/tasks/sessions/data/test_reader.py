"""Which form a source is in, and what is said where it is in none."""

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from client.data.read import read_all
from client.tasks.sessions.data.reader import read_visitors
from client.tasks.sessions.data.visitors import Visitor, Visits
from client.tasks.sessions.task import TASK
from common.errors import DataError, VocabularyError
from common.tasks.sessions.vocabulary import Items, demo_items
from tests.support.files import Writer

HEADER = "user,item,timestamp"


def names(dataset: Visits, number: int = 0) -> list[list[str]]:
    """Return a visitor's sessions, readable."""
    return [[dataset.vocabulary.items[k] for k in session.tolist()] for session in dataset.units[number].sessions]


def cases(dataset: Visits, visitor: Visitor) -> list[tuple[str, str]]:
    items = dataset.vocabulary.items
    return [("".join(items[k] for k in case.prefix.tolist()), items[case.target]) for case in visitor.test]


def test_the_demo_or_some_of_it() -> None:
    assert len(read_all("sessions", "demo").units) == TASK.demo_units
    some = read_all("sessions", "demo:50-60", vocabulary=demo_items(), seed=2)
    assert (len(some.units), some.units[0].name) == (10, "visitor-00050")


def test_the_demo_speaks_its_own_vocabulary_only() -> None:
    with pytest.raises(VocabularyError, match="embedded data do not fit"):
        read_all("sessions", "demo", vocabulary=Items(items=("a",)))


@pytest.mark.parametrize("name", ["sessions.txt", "sessions.txt.gz"])
@pytest.mark.parametrize("lines", [("a b", "", "b  c b"), ("a,b", "b, c,b")])
def test_a_session_a_line(text: Writer, name: str, lines: tuple[str, ...]) -> None:
    dataset = read_visitors(text(*lines, name=name))
    assert names(dataset) == [["a", "b"], ["b", "c", "b"]]
    assert [visitor.name for visitor in dataset.units] == ["group-00001"]
    assert dataset.vocabulary.items == ("b", "a", "c"), "most clicked first, then by name"
    assert dataset.notes == ()


def test_consecutive_sessions_make_a_visitor_and_short_ones_are_dropped_before(text: Writer) -> None:
    dataset = read_visitors(text("a b", "a", "b a", "c", "c a"), group=2)
    assert [visitor.name for visitor in dataset.units] == ["group-00001", "group-00002"]
    assert [names(dataset, k) for k in range(2)] == [[["a", "b"], ["b", "a"]], [["c", "a"]]]
    assert dataset.notes == (
        "2 sessions of one click dropped",
        "2 visitors of 2 sessions each, in order; without a column user nothing says whose the sessions are",
    )


def test_items_outside_the_vocabulary_are_skipped_and_counted(text: Writer) -> None:
    dataset = read_visitors(text("a x b", "a x", "b a"), Items(items=("b", "a")), group=2)
    assert [session.tolist() for visitor in dataset.units for session in visitor.sessions] == [[1, 0], [0, 1]]
    assert [visitor.name for visitor in dataset.units] == ["group-00001", "group-00002"], "as without the vocabulary"
    lost = "3 clicks skipped on or beside items outside the vocabulary, 1 sessions with nothing left"
    assert (dataset.notes[0], dataset.notes[-1]) == ("1 row skipped on or beside items outside the vocabulary", lost)


def test_a_client_without_a_known_item_takes_part_with_nothing(text: Writer) -> None:
    dataset = read_visitors(text("x y"), Items(items=("a",)))
    assert [len(visitor.sessions) for visitor in dataset.units] == [0]


def test_a_test_file_is_dealt_to_the_visitors_in_order(text: Writer) -> None:
    text("a b", "b c", "c a", name="set/train.txt")
    folder = text("a b c", "z a", "b z", name="set/test.txt.gz").parent
    dataset = read_visitors(folder, group=1)
    assert [cases(dataset, visitor) for visitor in dataset.units] == [[], [("a", "b")], [("ab", "c")]]
    assert dataset.notes[-1].startswith("2 of 4 test cases left out")


def test_a_test_file_lies_anywhere_and_is_dealt_as_one_in_the_folder_is(text: Writer) -> None:
    train, test = text("a b", "b c", "c a", name="clicks.txt"), text("a b c", "z a", "b z", name="held-out.txt.gz")
    dataset = read_visitors(train, test=test, group=1)
    assert [cases(dataset, visitor) for visitor in dataset.units] == [[], [("a", "b")], [("ab", "c")]]
    assert dataset.vocabulary.items == ("a", "b", "c"), "of the training sessions only"
    assert dataset.notes[-1].startswith("2 of 4 test cases left out")


def test_a_test_log_tells_whose_its_sessions_are_and_all_of_it_is_held_out(text: Writer) -> None:
    train = text(HEADER, "ann,a,1", "ann,b,2", "bob,b,1", "bob,a,2", name="clicks.csv")
    test = text(HEADER + ",split", "bob,a,9,train", "bob,b,10,train", "cyd,b,9,test", "cyd,a,10,test", name="test.csv")
    ann, bob, cyd = (dataset := read_visitors(train, test=test)).units
    assert [cases(dataset, visitor) for visitor in (ann, bob, cyd)] == [[], [("a", "b")], [("b", "a")]]
    assert [len(visitor.sessions) for visitor in (ann, bob, cyd)] == [1, 1, 0]


def test_a_published_log_can_be_the_test_file(text: Writer) -> None:
    train = text("1 2", "2 1", name="clicks.txt")
    clicks = [f"{k},2014-04-07T10:51:{k:02}.000Z,{item},0" for k in range(5) for item in (1, 2)]
    dataset = read_visitors(train, test=text(*clicks, name="yoochoose-clicks.dat"))
    assert [len(visitor.sessions) for visitor in dataset.units] == [2]
    assert set(cases(dataset, dataset.units[0])) == {("1", "2")}


def test_pairs_of_prefix_and_next_item(text: Writer) -> None:
    text("a,b", "b,c", name="set/train_sessions.txt.gz")
    folder = text("a,b\tc", "z,b\ta", "z\ta", "a\tz", name="set/test_pairs.tsv.gz").parent
    dataset = read_visitors(folder)
    assert cases(dataset, dataset.units[0]) == [("ab", "c"), ("b", "a")]
    assert dataset.notes[-1].startswith("2 of 4 test cases left out")


def test_a_malformed_pair_is_named(text: Writer) -> None:
    text("a,b", name="set/train_sessions.txt")
    folder = text("a\tb", "a,b", name="set/test_pairs.tsv").parent
    with pytest.raises(DataError, match=r"test_pairs\.tsv, line 2: not a test example"):
        read_visitors(folder)


def test_a_log_in_the_session_rec_form(text: Writer) -> None:
    text("SessionId\tItemId\tTime", "7\tb\t20.5", "7\ta\t10.5", "5\tc\t5", "5\ta\t6", name="set/x_train_full.txt")
    folder = text("SessionId\tItemId\tTime", "1\ta\t99", "1\tb\t100", name="set/x_test.txt").parent
    dataset = read_visitors(folder)
    assert names(dataset) == [["c", "a"], ["a", "b"]], "sessions and clicks in order of time"
    assert cases(dataset, dataset.units[0]) == [("a", "b")]


def test_sessions_with_users_one_a_row(text: Writer) -> None:
    header = "sessionId\tuserId\titems"
    text(header, "9\tbob\ta,b", "10\tann\tc,a", name="set/users_valid.txt")
    text(header, "11\tbob\tb,c", "2\tbob\tc,c", name="set/users_test.txt")
    folder = text("q,q", name="set/test.txt").parent
    dataset = read_visitors(folder)
    assert [visitor.name for visitor in dataset.units] == ["ann", "bob"]
    assert names(dataset, 1) == [["a", "b"], ["c", "c"], ["b", "c"]]


def test_a_folder_of_tables_is_one_data_set(text: Writer) -> None:
    text(HEADER, "bob,a,1", "bob,b,2", name="set/client-2.csv")
    folder = text(HEADER, "ann,a,1", "ann,b,2", name="set/client-1.csv").parent
    dataset = read_visitors(folder)
    assert [visitor.name for visitor in dataset.units] == ["ann", "bob"]


def test_a_parquet_log(tmp_path: Path) -> None:
    columns = {"user_id": [1.0, 1.0, 1.0], "item": [5, 7, None], "time": [20.0, 10.5, 30.0]}
    path = tmp_path / "clicks.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns).slice(0, 2), path)
    dataset = read_visitors(path)
    assert (dataset.units[0].name, names(dataset)) == ("1", [["7", "5"]])
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    with pytest.raises(DataError, match=r"clicks\.parquet, row 3, column 'item': empty cell"):
        read_visitors(path)
