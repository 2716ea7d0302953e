"""Filters of items: seen, excluded, in stock; and files of names, also broken ones."""

import math
from pathlib import Path

import numpy as np
import pytest

from client.tasks.lists import ItemFilter, about, best_first, diversify, read_items, two_digits
from common.errors import DataError

NAMES = ("tea", "coffee", "milk", "bread")
SEEN = np.array([0, 0, 1])


def test_only_allowed_items_are_left() -> None:
    assert ItemFilter.seen(hide=False).allowed(4, SEEN).tolist() == [True] * 4
    assert ItemFilter.seen(hide=True).allowed(4, SEEN).tolist() == [False, False, True, True]
    both = ItemFilter(True, np.array([3]), np.array([1, 2, 3]))
    assert both.allowed(4, SEEN).tolist() == [False, False, True, False]


def test_an_empty_list_is_explained() -> None:
    assert ItemFilter.seen(hide=False).reason_of_none(0, SEEN[:0]) == "no item is left of 0"
    both = ItemFilter(True, np.array([3]), np.array([0, 1]))
    expected = "no item is left of 4: 2 are seen already, --exclude names 1, --only names 2"
    assert both.reason_of_none(4, SEEN) == expected


def test_names_are_read_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "stock.txt"
    path.write_bytes("\ufeffmilk\r\n\n tea \nwine\nmilk\nbeer".encode())
    places, unknown = read_items(path, NAMES)
    assert (places.tolist(), unknown) == ([0, 2], 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "names none of the 4 items"),
        (b"wine\n=cmd()\n", "names none of the 4 items"),
        (b"\xff\xfe\x00tea", "is not text in UTF-8"),
        (None, "No such file or directory; give a file with one item per line"),
    ],
)
def test_an_unusable_file_is_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "stock.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_items(path, NAMES)
    with pytest.raises(DataError, match="one item per line"):
        read_items(tmp_path, NAMES)


def test_a_huge_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("client.tasks.lists.MAX_BYTES", 10)
    (tmp_path / "stock.txt").write_text("tea\n" * 10)
    with pytest.raises(DataError, match="is larger than"):
        read_items(tmp_path / "stock.txt", NAMES)


def test_ties_are_broken_by_index_and_nan_is_left_out() -> None:
    scores = np.array([[0.5, np.nan, 0.9], [0.5, 0.9, 1.0]])
    allowed = np.array([[True, True, True], [True, True, False]])
    assert best_first(scores, allowed).tolist() == [2, 4, 0, 3]


def test_diversification_puts_off_candidates_like_those_chosen() -> None:
    alike = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], float)
    assert diversify(alike, 0.5, 3).tolist() == [0, 2, 1]
    assert diversify(alike, 1.0, 3).tolist() == [0, 1, 2]
    assert diversify(np.zeros((0, 0)), 0.5, 3).tolist() == []


@pytest.mark.parametrize(
    ("score", "shown"), [(0.996, 1.0), (0.123, 0.12), (-3.14159, -3.14), (0.00456, 0.0046), (0, 0)]
)
def test_scores_have_two_digits(score: float, shown: float) -> None:
    assert two_digits(score) == shown


@pytest.mark.parametrize(
    ("count", "text"),
    [
        *((34, "about 30"), (35, "about 40"), (1234, "about 1,230"), (10, "about 10")),
        *((9.9, ""), (-50, ""), (math.nan, ""), (math.inf, "")),
    ],
)
def test_a_count_is_stated_in_tens_unless_it_is_small(count: float, text: str) -> None:
    assert about(count) == text
