"""Supervision of a run: repetition, pauses and their limit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from common import files
from common.errors import ConfigError, RunError
from deploy.federation.watch import MAX_ATTEMPTS, MAX_PAUSE_SECONDS, LostRunError, supervise
from server.record.folder import Checkpoint, RunDirectory

RESULT: Any = object()


class Attempts:
    """Script of attempts, each of which reaches a round and ends with an error or a result."""

    def __init__(self, folder: RunDirectory, *script: tuple[int, Exception | None]) -> None:
        self.folder, self.script, self.resumed = folder, list(script), list[bool]()

    def __call__(self, again: bool) -> Any:
        self.resumed.append(again)
        reached, error = self.script.pop(0)
        if reached >= 0:
            self.folder.checkpoints.save(Checkpoint(reached, 0, {}), 0)
        if error is not None:
            raise error
        return RESULT


@pytest.fixture
def folder(tmp_path: Path) -> RunDirectory:
    folder = RunDirectory(tmp_path, "r1")
    folder.checkpoints.path.mkdir(parents=True)
    return folder


@pytest.fixture
def supervised(folder: RunDirectory) -> Callable[..., tuple[Attempts, list[float]]]:
    def run(*script: tuple[int, Exception | None]) -> tuple[Attempts, list[float]]:
        attempts, pauses = Attempts(folder, *script), list[float]()
        assert supervise(attempts, folder, Console(stderr=True, width=200), pauses.append) is RESULT
        return attempts, pauses

    return run


LOST = LostRunError("the SuperLink ended with exit code -9; the end of its log:\nTraceback")


def test_a_lost_run_goes_on_from_its_checkpoint(supervised: Any, capsys: pytest.CaptureFixture[str]) -> None:
    attempts, pauses = supervised((3, LOST), (5, None))
    assert (attempts.resumed, pauses) == ([False, True], [0.1])
    printed = capsys.readouterr().err
    assert printed == "the SuperLink ended with exit code -9; the run goes on from round 3 in 0.1 s\n"


def test_a_run_without_a_checkpoint_starts_anew(supervised: Any) -> None:
    attempts, _ = supervised((-1, LOST), (2, None))
    assert attempts.resumed == [False, False]


def test_pauses_grow_with_faults_in_a_row_and_start_again_after_progress(supervised: Any) -> None:
    _, pauses = supervised((1, LOST), (1, LOST), (1, LOST), (2, LOST), (2, LOST), (2, None))
    assert pauses == pytest.approx([0.1, 0.4, 1.6, 0.1, 0.4])
    assert max(pauses) <= MAX_PAUSE_SECONDS


def test_a_restart_that_fails_is_repeated_too(supervised: Any) -> None:
    attempts, _ = supervised((1, LOST), (1, ConfigError("port 9092 of 127.0.0.1: taken")), (2, None))
    assert attempts.resumed == [False, True, True]


def test_a_fault_on_a_full_disk_waits_for_room_and_does_not_count(
    supervised: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = [0] * 4  # of two folders, after the fault and at the begin of the wait
    monkeypatch.setattr(files, "free_bytes", lambda folder: looks.pop() if looks else 10 * files.LEAST_ROOM)
    attempts, pauses = supervised((-1, OSError(28, "No space left on device")), (2, None))
    assert (attempts.resumed, pauses, looks) == ([False, False], [], [])
    assert "disk full: 0 B are free, 67.1 MB needed for a round; waiting for room in " in capsys.readouterr().err


def test_a_first_start_that_fails_is_an_error_at_once(folder: RunDirectory) -> None:
    attempts = Attempts(folder, (-1, ConfigError("port 9092 is taken")), (1, None))
    with pytest.raises(ConfigError, match="is taken"):
        supervise(attempts, folder, Console(quiet=True), lambda seconds: None)


def test_attempts_without_progress_have_a_limit(folder: RunDirectory) -> None:
    attempts = Attempts(folder, *[(4, LOST)] * 2 * MAX_ATTEMPTS)
    with pytest.raises(RunError, match=rf"(?s)ended with exit code -9.*given up after {MAX_ATTEMPTS} attempts"):
        supervise(attempts, folder, Console(quiet=True), lambda seconds: None)
    assert len(attempts.resumed) == MAX_ATTEMPTS
