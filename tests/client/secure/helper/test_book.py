"""Book of a helper: copies of the file, keys that are deleted, one process at a time."""

import shutil
import sqlite3
import stat
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from client.secure.helper.helper_state import HelperState, RunKeys, open_book
from common.errors import RefusedError, StateError
from tests.support.helpers import terms

SECRET, DAY = b"s" * 32, 86_400.0
NAMES = ("helper.sqlite", "helper.json")


class Clock:
    """Clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


def filled(folder: Path, rounds: int = 2, clock: Clock | None = None) -> HelperState:
    """Return an open book with rounds 1 to `rounds` of run `toy`."""
    book = open_book(folder, clock or Clock())
    book.keys("toy", lambda: RunKeys(SECRET, "card"))
    for number in range(1, rounds + 1):
        book.enter(terms(round=number), f"set {number}", 3, partial(bytes, [96 + number] * 32))
    return book


def copied(folder: Path, name: str) -> Path:
    """Copy the files of a closed book to a new folder."""
    target = folder.parent / name
    target.mkdir()
    for file in NAMES:
        if (folder / file).exists():
            shutil.copy(folder / file, target / file)
    return target


def test_entries_outlive_a_restart(tmp_path: Path) -> None:
    filled(tmp_path).close()
    with closing(open_book(tmp_path)) as book:
        assert book.find_keys("toy") == RunKeys(SECRET, "card")
        assert book.enter(terms(round=2), "set 2", 3, lambda: b"") == b"b" * 32


def test_an_older_copy_of_the_file_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "a", rounds=1).close()
    older = copied(tmp_path / "a", "older")
    filled(tmp_path / "a", rounds=2).close()
    shutil.copy(older / "helper.sqlite", tmp_path / "a" / "helper.sqlite")
    with pytest.raises(StateError, match=r"is older than this helper's last answer \(entry 2 of 3\)"):
        open_book(tmp_path / "a")


def test_a_copy_that_went_on_elsewhere_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "a", rounds=1).close()
    fork = copied(tmp_path / "a", "fork")
    filled(tmp_path / "a", rounds=2).close()
    with closing(open_book(fork)) as book:
        book.enter(terms(round=2), "another set", 3, lambda: b"z" * 32)
    shutil.copy(fork / "helper.sqlite", tmp_path / "a" / "helper.sqlite")
    with pytest.raises(StateError, match="not the file that its roll-back record names"):
        open_book(tmp_path / "a")


def test_the_book_of_another_helper_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "a").close()
    filled(tmp_path / "b", rounds=9).close()
    shutil.copy(tmp_path / "b" / "helper.sqlite", tmp_path / "a" / "helper.sqlite")
    with pytest.raises(StateError, match="older"):
        open_book(tmp_path / "a")


@pytest.mark.parametrize(
    ("lost", "reason"), [("helper.sqlite", "entry 0 of 3"), ("helper.json", "roll-back record .* is missing")]
)
def test_a_lost_file_is_no_new_start(tmp_path: Path, lost: str, reason: str) -> None:
    filled(tmp_path).close()
    (tmp_path / lost).unlink()
    with pytest.raises(StateError, match=reason):
        open_book(tmp_path)


def test_a_record_that_a_crash_left_behind_is_accepted(tmp_path: Path) -> None:
    filled(tmp_path / "a", rounds=1).close()
    behind = copied(tmp_path / "a", "behind")
    filled(tmp_path / "a", rounds=2).close()
    shutil.copy(behind / "helper.json", tmp_path / "a" / "helper.json")
    with closing(open_book(tmp_path / "a")) as book, pytest.raises(RefusedError, match="another set"):
        book.enter(terms(round=2), "another set", 3, lambda: b"z" * 32)


@pytest.mark.parametrize("content", [b"", b"no database" * 100])
def test_a_damaged_file_is_a_typed_error(tmp_path: Path, content: bytes) -> None:
    filled(tmp_path).close()
    for name in NAMES:
        before = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content)
        with pytest.raises(StateError):
            open_book(tmp_path)
        (tmp_path / name).write_bytes(before)
    open_book(tmp_path).close()


def test_a_truncated_file_is_a_typed_error(tmp_path: Path) -> None:
    filled(tmp_path, rounds=60).close()
    content = (tmp_path / "helper.sqlite").read_bytes()
    (tmp_path / "helper.sqlite").write_bytes(content[: len(content) // 2])
    with pytest.raises(StateError):
        open_book(tmp_path)


def test_one_process_at_a_time_and_files_of_the_owner_only(tmp_path: Path) -> None:
    with closing(filled(tmp_path)), pytest.raises(StateError, match="runs a helper in"):
        open_book(tmp_path)
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in NAMES} == {0o600}
    open_book(tmp_path).close()


def test_keys_of_earlier_rounds_leave_the_file(tmp_path: Path) -> None:
    filled(tmp_path, rounds=2).close()
    content = (tmp_path / "helper.sqlite").read_bytes()
    assert b"a" * 32 not in content
    assert b"b" * 32 in content


def test_the_end_of_a_run_deletes_its_keys_and_keeps_its_sums(tmp_path: Path) -> None:
    with closing(filled(tmp_path)) as book:
        book.end("toy")
        book.end("unknown")
        with pytest.raises(RefusedError, match="run 'toy' is over here"):
            book.keys("toy", lambda: RunKeys(b"t" * 32, "new card"))
    content = (tmp_path / "helper.sqlite").read_bytes()
    assert b"b" * 32 not in content
    assert SECRET not in content
    with closing(sqlite3.connect(tmp_path / "helper.sqlite")) as db:
        assert db.execute("SELECT round, members, noise_key FROM sums").fetchall() == [
            (1, "set 1", None),
            (2, "set 2", None),
        ]


def test_runs_without_messages_are_forgotten(tmp_path: Path) -> None:
    clock = Clock()
    with closing(filled(tmp_path, clock=clock)) as book:
        clock.now += 20 * DAY
        book.find_keys("toy")
        clock.now += 29 * DAY
        assert book.forget(30) == []
        clock.now += 2 * DAY
        assert book.forget(30) == ["toy"]
        assert book.forget(30) == []
        with pytest.raises(RefusedError, match="over here"):
            book.find_keys("toy")


def test_nothing_is_booked_on_a_full_disk(tmp_path: Path) -> None:
    with closing(filled(tmp_path)) as book:
        book._db.execute("PRAGMA max_page_count = 1")
        with pytest.raises(StateError, match="nothing was booked"):
            book.enter(terms(round=3, run="x" * 200), "set " * 5_000, 3, lambda: b"c" * 32)
        book._db.execute("PRAGMA max_page_count = 100000")
        assert book.enter(terms(round=2), "set 2", 3, lambda: b"") == b"b" * 32
