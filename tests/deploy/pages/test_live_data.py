"""Live page: the list of runs, and events as they are written."""

import fcntl
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from deploy.pages.live_data import MAX_EVENTS, MAX_LINE, RunList, Tail, summarize
from server.record.events import Finish, RoundEvent, event_to_line
from tests.support.run_folders import MakeRun
from tests.support.ui import a_round, a_start, ask, write_run


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


def runs(root: Path, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ask(root, "/api/runs", query).body)
    return found


def test_a_completed_run_shows_its_headline(tmp_path: Path) -> None:
    write_run(
        tmp_path, "r1", [a_start(fingerprint="f", split="test"), a_round(1), a_round(9), Finish(status="completed")]
    )
    [run] = runs(tmp_path)
    assert (run["id"], run["status"], run["rounds_done"], run["rounds"]) == ("r1", "completed", 9, 9)
    assert (run["metric"], run["value"]) == ("auc", "0.944")
    assert run["group"] == "rules|f|test|0"


def test_a_failed_run_shows_its_reason(tmp_path: Path) -> None:
    write_run(tmp_path, "r1", [a_start(), Finish(status="failed", reason="no quorum\nTraceback")])
    [run] = runs(tmp_path)
    assert (run["status"], run["reason"]) == ("failed", "no quorum")


def test_a_run_without_process_is_stopped_and_a_locked_one_running(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "r1", [a_start(), a_round(1)])
    assert [run["status"] for run in runs(tmp_path)] == ["stopped"]
    with folder.lock():
        assert [run["status"] for run in runs(tmp_path)] == ["running"]
    assert [run["status"] for run in runs(tmp_path)] == ["stopped"]
    (folder.path / ".lock").unlink()
    folder.append(a_round(2, time=time.time()))
    assert [run["status"] for run in runs(tmp_path)] == ["running"]


def test_looking_at_a_run_writes_nothing(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "r1", [a_start(), a_round(1)])
    before = {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))}
    for path in ("/api/runs", "/api/runs/r1", "/api/runs/r1/examples", "/"):
        ask(tmp_path, path)
    assert {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))} == before
    with (folder.path / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_resumed_run_is_not_completed(tmp_path: Path) -> None:
    events = [a_start(), a_round(9), Finish(status="completed"), a_start(rounds=20, time=time.time())]
    write_run(tmp_path, "r1", events)
    assert runs(tmp_path)[0]["status"] == "running"


def test_the_list_is_limited_and_newest_first(tmp_path: Path) -> None:
    for k in range(5):
        write_run(tmp_path, f"r{k}", [a_start(f"r{k}")])
        time.sleep(0.01)
    assert [run["id"] for run in runs(tmp_path, "limit=2")] == ["r4", "r3"]
    assert len(runs(tmp_path)) == 5
    assert ask(tmp_path, "/api/runs", "limit=-1").status == 400
    assert ask(tmp_path, "/api/runs", "limit=" + "9" * 5000).status == 400


def test_a_changed_run_is_read_again(tmp_path: Path) -> None:
    folder, found = write_run(tmp_path, "r1", [a_start(), a_round(1), Finish(status="completed")]), RunList(tmp_path)
    assert found.newest(9)[0]["rounds_done"] == 1
    folder.append(a_round(2))
    folder.append(Finish(status="completed"))
    assert found.newest(9)[0]["rounds_done"] == 2


def test_damaged_folders_and_links_are_left_out(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    write_run(root, "good")
    write_run(tmp_path, "outside")
    (root / "link").symlink_to(tmp_path / "outside")
    for name, text in {
        "garbled": b"\xff\xfe",
        "mistyped": b"= 1",
        "large": b"#" * 2_000_000,
        "deep": b"a=" + b"[" * 9000,
    }.items():
        (root / name).mkdir()
        (root / name / "config.toml").write_bytes(text)
    linked = write_run(root, "linked").path / "config.toml"
    linked.unlink()
    linked.symlink_to(tmp_path / "outside" / "config.toml")
    (root / "file").write_text("x")
    assert [run["id"] for run in runs(root)] == ["good"]
    assert ask(root, "/api/runs/linked").status == 404
    assert ask(root, "/api/runs/link").status == 404


def test_no_folder_of_runs_is_an_empty_list(tmp_path: Path) -> None:
    assert runs(tmp_path / "missing") == []


def test_odd_values_of_a_configuration_do_not_stop_the_list(tmp_path: Path) -> None:
    write_run(
        tmp_path, "r1", rounds="many", seed=[1, 2], task={"a": "b"}, **{"privacy.unit": 4, "privacy.epsilon": "x"}
    )
    assert runs(tmp_path)[0]["rounds"] == 0


def test_details_hold_result_privacy_and_origin(fake_run: MakeRun) -> None:
    path = fake_run("r1")
    (path / "origin.json").write_text('{"command": "up", "data": "demo", "clients": 4}')
    detail = json.loads(ask(path.parent, "/api/runs/r1").body)
    assert detail["result"]["status"] == "completed"
    assert detail["privacy"]["exact"] is False or detail["privacy"]["claim"]
    assert detail["origin"]["command"] == "up"
    assert detail["has_examples"] is False


def test_a_running_run_has_the_statement_of_its_configuration(tmp_path: Path) -> None:
    write_run(tmp_path, "noisy", [a_start()], **{"privacy.unit": "client", "privacy.epsilon": 3.0})
    write_run(tmp_path, "exact", [a_start()])
    noisy, exact = (json.loads(ask(tmp_path, f"/api/runs/{run}").body)["privacy"] for run in ("noisy", "exact"))
    assert (noisy["epsilon"], noisy["exact"], noisy["unit"]) == (3.0, False, "client")
    assert exact["exact"] is True


def test_damaged_files_of_a_run_are_absent(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "r1", task="nothing")
    (folder.path / "result.json").write_text("{")
    (folder.path / "origin.json").write_text("[" * 100_000)
    detail = json.loads(ask(tmp_path, "/api/runs/r1").body)
    assert (detail["result"], detail["origin"], detail["privacy"]) == (None, None, None)


def test_examples_are_served_if_they_exist_and_are_small(tmp_path: Path) -> None:
    path = write_run(tmp_path, "r1").path / "examples.json"
    assert ask(tmp_path, "/api/runs/r1/examples").status == 404
    path.write_text('{"examples": []}')
    assert ask(tmp_path, "/api/runs/r1/examples").body == b'{"examples": []}'
    path.write_text(" " * 2_000_000)
    assert ask(tmp_path, "/api/runs/r1/examples").status == 404


def test_a_run_without_start_or_fingerprint_is_comparable_with_none(tmp_path: Path) -> None:
    write_run(tmp_path, "r1", [a_start()])
    write_run(tmp_path, "r2", [a_round(1)])
    summaries = {run: summarize(tmp_path, run) or {} for run in ("r1", "r2")}
    assert [summary["group"] for summary in summaries.values()] == ["", ""]
    assert summaries["r2"]["started"] is None
