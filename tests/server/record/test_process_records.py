"""Records of processes: only a process that still runs under its recorded start time is found."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from server.record.process import ProcessRecord, read_records, record_process

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_a_running_process_is_found_until_it_ends(tmp_path: Path) -> None:
    with subprocess.Popen(SLEEPER) as process:
        record_process(tmp_path / "new", "sleeper", process.pid, "r1")
        [record] = read_records(tmp_path / "new")
        assert (record.name, record.pid, record.run) == ("sleeper", process.pid, "r1")
        assert record.find() == psutil.Process(process.pid)
        process.kill()
        while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:  # its parent has not asked for its status
            pass
        assert read_records(tmp_path / "new") == []
    assert (tmp_path / "new" / f"{process.pid}.json").exists(), "reading changes nothing"
    record_process(tmp_path / "new", "this")
    assert [path.stem for path in (tmp_path / "new").glob("*.json")] == [str(os.getpid())]


def test_a_process_with_the_id_of_an_ended_one_is_not_found(tmp_path: Path) -> None:
    started = psutil.Process().create_time()
    assert ProcessRecord("this", os.getpid(), started).find() is not None
    for other in (started - 60, started + 60):
        assert ProcessRecord("ended", os.getpid(), other).find() is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"name": "x", "pid": "y", "started": 0, "run": ""}',
        '{"name":"x","pid":-1,"started":0,"run":""}',
    ],
)
def test_a_damaged_record_is_ignored_and_removed_by_the_next(content: str, tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(content)
    assert read_records(tmp_path) == []
    record_process(tmp_path, "this")
    assert [json.loads(path.read_text())["name"] for path in tmp_path.glob("*.json")] == ["this"]


def test_an_ended_process_and_a_folder_that_cannot_be_made_leave_no_record(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    record_process(tmp_path / "new", "ended", process.pid)
    assert not list(tmp_path.rglob("*.json"))
    (tmp_path / "file").write_text("")
    record_process(tmp_path / "file" / "below", "this")
    assert not list(tmp_path.rglob("*.json"))
