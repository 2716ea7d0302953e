"""What is written is read back."""

from pathlib import Path

from client.tasks.sessions.data.reader import read_visitors
from client.tasks.sessions.data.visitors import Visitor, Visits, as_clicks, cases_of, write_visitors
from common.tasks.sessions.vocabulary import Items

ITEMS = Items(items=("cup, blue", 'the "best" cup', "7"))

Plain = tuple[str, list[list[int]], list[tuple[list[int], int]]]


def plain(visitor: Visitor) -> Plain:
    cases = [(case.prefix.tolist(), case.target) for case in visitor.test]
    return visitor.name, [session.tolist() for session in visitor.sessions], cases


def test_sessions_test_cases_and_visitors_with_nothing_survive(tmp_path: Path) -> None:
    long = as_clicks([0, 1, 2, 0, 0, 1])
    visitors = (
        Visitor("ann, the first", (as_clicks([0, 1]), as_clicks([2, 2, 0]), as_clicks([0, 1])), cases_of(long)[::-1]),
        Visitor("bob", ()),
        Visitor("cyd", (), cases_of(as_clicks([1, 2]))),
        Visitor("dan", (as_clicks([2, 1]),)),
    )
    path = tmp_path / "client.csv"
    write_visitors(path, Visits(visitors, ITEMS))
    again = read_visitors(path, ITEMS)
    assert [plain(visitor) for visitor in again.units] == [plain(visitor) for visitor in visitors]
    assert again.notes == ()


def test_a_visitor_with_nothing_alone_takes_part(tmp_path: Path) -> None:
    write_visitors(tmp_path / "bob.csv", Visits((Visitor("bob", ()),), ITEMS))
    assert [plain(visitor) for visitor in read_visitors(tmp_path / "bob.csv", ITEMS).units] == [("bob", [], [])]
