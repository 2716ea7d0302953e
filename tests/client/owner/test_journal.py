"""Journal of a client: whole lines, private files, rotation, full disks, damaged lines."""

import json
import logging
import math
import os
import stat
import threading
from pathlib import Path

import pytest

from client.owner import journal
from client.owner.journal import JOURNAL, ConnectionEntry, RequestEntry, RequestJournal, read_journal


def _entry(number: int, **fields: object) -> RequestEntry:
    return RequestEntry(f"id-{number}", "2026-11-23T10:00:00+00:00", "client-0", run="r", round=number, **fields)


def test_an_entry_is_read_as_it_was_written(tmp_path: Path) -> None:
    entry = _entry(3, asked="train", tensors={"update/w": (2, 3)}, clear={"loss": 0.25}, epsilon_left_total=None)
    RequestJournal(tmp_path).write(entry)
    [read] = read_journal(tmp_path)
    assert (read["round"], read["asked"], read["tensors"], read["clear"]) == (
        3,
        "train",
        {"update/w": [2, 3]},
        {"loss": 0.25},
    )
    assert read["epsilon_left_total"] is None


def test_journal_and_new_state_folder_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    RequestJournal(folder).write(_entry(1))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / JOURNAL).stat().st_mode) == 0o600


def test_a_full_file_is_rotated_and_five_older_ones_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MAX_BYTES", 2_000)
    written = RequestJournal(tmp_path)
    for number in range(60):
        written.write(_entry(number))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted([JOURNAL, *(f"journal.{k}.jsonl" for k in range(1, 6))])
    assert all(path.stat().st_size <= 2_000 for path in tmp_path.iterdir())
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in tmp_path.iterdir())
    rounds = [entry["round"] for entry in read_journal(tmp_path)]
    assert rounds == list(range(rounds[0], 60))
    assert 0 < rounds[0] < 50


def test_several_writers_lose_no_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MAX_BYTES", 20_000)

    def write(first: int) -> None:
        writer = RequestJournal(tmp_path)
        for number in range(first, first + 40):
            writer.write(_entry(number))

    threads = [threading.Thread(target=write, args=(40 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(entry["round"] for entry in read_journal(tmp_path)) == list(range(160))


def test_entries_of_a_block_are_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, write = list[int](), os.write

    def noted(handle: int, content: bytes) -> int:
        sizes.append(len(content))
        return write(handle, content)

    monkeypatch.setattr(os, "write", noted)
    written = RequestJournal(tmp_path)
    with written.together():
        for number in range(125):
            written.write(_entry(number))
        assert list(read_journal(tmp_path)) == []
    assert len(sizes) == 1
    written.write(_entry(125))
    assert [entry["round"] for entry in read_journal(tmp_path)] == list(range(126))


def test_a_block_larger_than_a_file_is_rotated_at_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MAX_BYTES", 5_000)
    written = RequestJournal(tmp_path)
    with written.together():
        for number in range(30):
            written.write(_entry(number))
    assert all(path.stat().st_size <= 5_000 for path in tmp_path.iterdir())
    assert [entry["round"] for entry in read_journal(tmp_path)] == list(range(30))


def test_entries_before_an_error_in_their_block_are_written(tmp_path: Path) -> None:
    written = RequestJournal(tmp_path)

    def fail() -> None:
        with written.together():
            written.write(_entry(1))
            raise ValueError("the second")

    with pytest.raises(ValueError, match="the second"):
        fail()
    written.write(_entry(2))
    assert [entry["round"] for entry in read_journal(tmp_path)] == [1, 2]


def test_a_full_disk_gives_one_warning_until_the_journal_can_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / JOURNAL).symlink_to("/dev/full")  # every write fails as on a full disk
    written = RequestJournal(tmp_path)
    with caplog.at_level(logging.WARNING, "fedloom.node"):
        for number in range(3):
            written.write(_entry(number))
        [warning] = caplog.messages
        assert "No space left on device" in warning
        (tmp_path / JOURNAL).unlink()
        written.write(_entry(3))
    assert len(caplog.messages) == 1
    assert [entry["round"] for entry in read_journal(tmp_path)] == [3]


def test_damaged_lines_are_skipped(tmp_path: Path) -> None:
    written = RequestJournal(tmp_path)
    written.write(_entry(1))
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b'{"torn": \n[1, 2]\n\xff\xfe\n{"client": 3}\n')
    written.write(ConnectionEntry("2026-11-23T10:00:01+00:00", "client-0", "left", "localhost:1"))
    assert [entry.get("connection", "") for entry in read_journal(tmp_path)] == ["", "left"]


def test_non_finite_numbers_are_valid_json(tmp_path: Path) -> None:
    RequestJournal(tmp_path).write(_entry(1, clear={"loss": math.inf}))

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    assert json.loads((tmp_path / JOURNAL).read_text(), parse_constant=refuse)["clear"] == {"loss": "inf"}
