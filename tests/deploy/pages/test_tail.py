"""Reader of growing metrics files, hostile ones included."""

import subprocess
import sys
from pathlib import Path

from deploy.pages.live_data import MAX_EVENTS, MAX_LINE, Tail
from server.record.events import RoundEvent, event_to_line
from tests.support.ui import a_round, a_start, write_run


def rounds_of(tail: Tail) -> list[int]:
    """Return the numbers of all rounds to the end of the file."""
    numbers: list[int] = []
    while True:
        batch = tail.read()
        numbers += [event.round for event in batch.events if isinstance(event, RoundEvent)]
        if not batch.has_more:
            return numbers


def test_a_tail_reads_each_event_once(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "r1", [a_start(), a_round(1)])
    tail = Tail(tmp_path, "r1")
    assert rounds_of(tail) == [1]
    assert not tail.is_behind()
    folder.append(a_round(2))
    assert tail.is_behind()
    assert rounds_of(tail) == [2]
    assert rounds_of(Tail(tmp_path, "r1", tail.offset)) == []


def test_a_torn_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = write_run(tmp_path, "r1").path / "metrics.jsonl"
    line = event_to_line(a_round(1))
    path.write_bytes(line[:50])
    tail = Tail(tmp_path, "r1")
    assert rounds_of(tail) == []
    path.write_bytes(line)
    assert rounds_of(tail) == [1]
    assert tail.skipped == 0


def test_a_missing_file_has_no_events(tmp_path: Path) -> None:
    tail = Tail(tmp_path, "r1")
    assert not tail.is_behind()
    assert tail.read().events == []


def test_a_file_that_became_shorter_starts_again(tmp_path: Path) -> None:
    path = write_run(tmp_path, "r1", [a_start(), a_round(1), a_round(2)]).path / "metrics.jsonl"
    tail = Tail(tmp_path, "r1")
    tail.read()
    path.write_bytes(event_to_line(a_round(7)))
    batch = tail.read()
    assert batch.is_reset
    assert [event.round for event in batch.events if isinstance(event, RoundEvent)] == [7]
    path.unlink()
    assert tail.is_behind()
    assert tail.read().is_reset
    assert not tail.is_behind()


def test_a_batch_is_limited(tmp_path: Path) -> None:
    path = write_run(tmp_path, "r1").path / "metrics.jsonl"
    path.write_bytes(b"".join(event_to_line(a_round(n, 2000)) for n in range(1, 1201)))
    tail = Tail(tmp_path, "r1")
    assert len(tail.read().events) == MAX_EVENTS
    assert rounds_of(tail) == list(range(MAX_EVENTS + 1, 1201))


def test_lines_that_are_no_events_are_counted(tmp_path: Path) -> None:
    path = write_run(tmp_path, "r1").path / "metrics.jsonl"
    bad = [b"{}", b"\xff\xfe\x00", b"[" * 100_000, b'{"event":"round"}', b"1" * 1000, b""]
    path.write_bytes(b"\n".join(bad) + b"\n" + event_to_line(a_round(1)))
    tail = Tail(tmp_path, "r1")
    assert rounds_of(tail) == [1]
    assert tail.skipped == 5


def test_a_line_that_is_too_long_is_skipped(tmp_path: Path) -> None:
    path = write_run(tmp_path, "r1").path / "metrics.jsonl"
    path.write_bytes(b"x" * (3 * MAX_LINE) + b"\n" + event_to_line(a_round(1)))
    tail = Tail(tmp_path, "r1")
    assert rounds_of(tail) == [1]
    assert tail.skipped == 1


def test_a_long_line_that_grows_is_skipped(tmp_path: Path) -> None:
    path = write_run(tmp_path, "r1").path / "metrics.jsonl"
    path.write_bytes(b"x" * (MAX_LINE + 5))
    tail = Tail(tmp_path, "r1")
    assert rounds_of(tail) == []
    with path.open("ab") as file:
        file.write(b"yyy")
    assert rounds_of(tail) == []
    with path.open("ab") as file:
        file.write(b"z\n" + event_to_line(a_round(1)))
    assert rounds_of(tail) == [1]
    assert tail.skipped == 1


def test_links_are_not_followed(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    outside = write_run(tmp_path / "outside", "r1", [a_start(), a_round(1)])
    inside = write_run(runs, "r2")
    (inside.path / "metrics.jsonl").symlink_to(outside.path / "metrics.jsonl")
    (runs / "r3").symlink_to(outside.path)
    assert Tail(runs, "r2").read().events == []
    assert Tail(runs, "r3").read().events == []
    assert Tail(runs, "../outside/r1").read().events == []


BIG = """
import os, sys
from pathlib import Path
from deploy.pages.live_data import summarize
from deploy.pages.live_data import Tail
from tests.support.ui import a_round
from server.record.events import event_to_line
root = Path(sys.argv[1])
path = root / "r1" / "metrics.jsonl"
line = event_to_line(a_round(1))
with path.open("wb") as file:
    file.truncate(500_000_000)                          # one line of zeros
    file.seek(0, os.SEEK_END)
    file.write(b"\\n" + b"{" * 999_000 + b"\\n")
    for _ in range(200):
        file.write(line[:-2] + b"," + b'"x":"' + b"y" * 990_000 + b'"}\\n')   # long, but events
    file.truncate(1_000_000_000)
tail, events, reads = Tail(root, "r1"), 0, 0
while True:
    batch = tail.read()
    events, reads = events + len(batch.events), reads + 1
    if not batch.has_more:
        break
assert events == 200, events
assert tail.skipped == 3, tail.skipped
assert summarize(root, "r1") is not None
[peak] = [text for text in Path("/proc/self/status").read_text().splitlines() if text.startswith("VmHWM")]
assert int(peak.split()[1]) < 200_000, peak  # kB
"""


def test_a_file_of_a_gigabyte_needs_less_than_200_megabytes(tmp_path: Path) -> None:
    write_run(tmp_path, "r1")
    done = subprocess.run([sys.executable, "-c", BIG, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
