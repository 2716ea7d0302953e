"""Control files of a state folder: pauses, requests to leave, pid files of live and dead processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from client.owner.control import (
    OwnerControl,
    RunningClient,
    is_paused,
    leave,
    pause,
    resume,
    running_clients,
    was_delivered,
    withdraw_request,
)
from common.errors import RefusedError

RUNNING = RunningClient(os.getpid(), "client-0", "localhost:9092", "2026-11-23T10:00:00+00:00")


def test_a_paused_client_refuses_until_it_is_resumed(tmp_path: Path) -> None:
    with OwnerControl(tmp_path, RUNNING) as control:
        control.check_not_paused()
        pause(tmp_path)
        pause(tmp_path)
        assert is_paused(tmp_path)
        with pytest.raises(RefusedError, match=r"^paused by its owner$"):
            control.check_not_paused()
        assert resume(tmp_path)
        control.check_not_paused()
        assert not resume(tmp_path)


def test_a_request_to_leave_reaches_every_running_client_and_ends_with_it(tmp_path: Path) -> None:
    other = RunningClient(os.getpid(), "client-1", "localhost:9092", "2026-11-23T10:00:00+00:00")
    with OwnerControl(tmp_path, RUNNING) as control:
        with OwnerControl(tmp_path, other) as second:
            assert not control.leaves
            assert leave(tmp_path) == [RUNNING, other]
            assert control.leaves
            assert second.leaves
        assert control.leaves
    assert list(tmp_path.iterdir()) == []
    with OwnerControl(tmp_path, RUNNING) as control:
        assert not control.leaves


def test_an_old_request_to_leave_does_not_stop_a_new_process(tmp_path: Path) -> None:
    (tmp_path / "client-0.leave").touch()
    with OwnerControl(tmp_path, RUNNING) as control:
        assert not control.leaves


def test_pid_files_without_a_process_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "gone.pid").write_text(json.dumps(vars(RUNNING)))
    (tmp_path / "torn.pid").write_text("{")
    assert list(running_clients(tmp_path)) == []
    assert leave(tmp_path) == []
    with OwnerControl(tmp_path, RUNNING):
        assert list(running_clients(tmp_path)) == [RUNNING]


def test_a_killed_process_leaves_a_stale_pid_file_that_the_next_one_takes_over(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from client.owner.control import *\n"
        f"with OwnerControl(Path({str(tmp_path)!r}), RunningClient(1, 'client-0', 's', 't')):\n"
        " print('up', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        assert [running.pid for running in running_clients(tmp_path)] == [1]
        with OwnerControl(tmp_path, RUNNING) as second:
            assert not second.is_alone
        assert [running.pid for running in running_clients(tmp_path)] == [1]
        process.kill()
    assert (tmp_path / "client-0.pid").exists()
    assert list(running_clients(tmp_path)) == []
    with OwnerControl(tmp_path, RUNNING) as second:
        assert second.is_alone
        assert list(running_clients(tmp_path)) == [RUNNING]


def test_drafts_of_a_killed_process_are_removed_and_those_of_a_running_one_stay(tmp_path: Path) -> None:
    draft, others = (
        tmp_path / name / "data" / "run" / ".memory.safetensors.9.tmp" for name in ("client-0", "client-1")
    )
    for path in (draft, others):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"torn")
    with OwnerControl(tmp_path, RUNNING):
        assert not draft.exists()
        draft.write_bytes(b"half")
        with OwnerControl(tmp_path, RUNNING) as second:
            assert not second.is_alone
        assert draft.exists()
    assert others.exists()


def test_a_client_asks_to_be_forgotten_in_its_next_reply_and_leaves(tmp_path: Path) -> None:
    with OwnerControl(tmp_path, RUNNING) as control:
        assert leave(tmp_path, forgets=True) == [RUNNING]
        control.acknowledge()  # of a reply from before
        assert not control.leaves
        pause(tmp_path)
        with pytest.raises(RefusedError, match=r"^asks to be forgotten$"):
            control.check_not_paused()
        assert not control.leaves, "the server may not have the reply"
        assert not was_delivered(tmp_path, RUNNING)
        control.acknowledge()
        assert control.leaves
    assert was_delivered(tmp_path, RUNNING), "the command reads it after the process"
    withdraw_request(tmp_path, RUNNING)
    assert not was_delivered(tmp_path, RUNNING)
    leave(tmp_path, forgets=True)
    (tmp_path / "client-0.forget").touch()
    with OwnerControl(tmp_path, RUNNING) as control:
        control.acknowledge()
        assert not control.leaves, "a request to an earlier process"
