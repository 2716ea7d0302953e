"""Cells as codes and times, titles as others spell them, and tables for the owner only."""

from pathlib import Path

import numpy as np
import pyarrow
import pytest

from client.data.tables.values import codes, normalize_title, places, private_csv, recode, union, unix_seconds


def test_titles_are_found_however_they_are_spelt() -> None:
    columns = {"user": ("user", "userid"), "item": ("item", "itemid"), "time": ("time",)}
    assert normalize_title("User-ID") == "userid"
    assert places(["Item_Id", "USER ID", "userId", "price"], columns) == {"user": "USER ID", "item": "Item_Id"}


def test_codes_of_several_columns_become_codes_of_all_their_names() -> None:
    columns = [["b", "a", "b"], ["c", "a"], []]
    parts = [codes(pyarrow.array(column, pyarrow.string())) for column in columns]
    assert [(part.tolist(), names) for part, names in parts] == [
        ([0, 1, 0], ["b", "a"]),
        ([0, 1], ["c", "a"]),
        ([], []),
    ]
    index = union([names for _, names in parts])
    assert index == {"b": 0, "a": 1, "c": 2}
    assert [recode(part, names, index).tolist() for part, names in parts] == [[0, 1, 0], [2, 1], []]
    assert recode(np.array([1, -1, 0]), ["c", "a"], index).tolist() == [1, -1, 2], "nobody stays nobody"


def test_a_table_that_others_could_read_is_the_owner_s_only_and_new(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("something, and longer than what follows")
    path.chmod(0o644)
    with private_csv(path) as writer:
        assert path.stat().st_mode & 0o777 == 0o600, "before the first row"
        writer.writerow(("a", 1, "x, y"))
    assert path.read_bytes() == b'a,1,"x, y"\n'


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1396437466.94", 1396437466.94),
        ("1396437466940", 1396437466.94),
        ("7", 7.0),
        ("2014-04-02T11:17:46.940Z", 1396437466.94),
        ("2014-04-02 11:17:46", 1396437466.0),
        ("2014-04-02T13:17:46+02:00", 1396437466.0),
        ("2014-04-02", 1396396800.0),
    ],
)
def test_times(text: str, seconds: float) -> None:
    """Expected by `date -u -d @1396437466`."""
    assert unix_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "noon", "nan", "inf", "2014-13-01"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        unix_seconds(text)
