"""Child processes: start, end, signals and ports."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from common.errors import RunError
from deploy.federation.processes import Processes
from deploy.superlink.superlink import free_port, require_free_port

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
]
# like flower-superlink: starts a grandchild in its own session and ends
DETACHING = [
    sys.executable,
    "-c",
    "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
    " start_new_session=True); print(p.pid, flush=True)",
]


def _first_line(log: Path) -> str:
    end = time.monotonic() + 10
    while not log.is_file() or "\n" not in log.read_text():
        assert time.monotonic() < end
        time.sleep(0.02)
    return log.read_text().splitlines()[0]


def _is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_leaving_ends_every_process_and_a_detached_grandchild(tmp_path: Path) -> None:
    with Processes() as processes:
        children = [processes.start("sleeper", SLEEPER) for _ in range(2)]
        detaching = processes.start("detaching", DETACHING, log=tmp_path / "log")
        grandchild = int(_first_line(tmp_path / "log"))
        detaching.process.wait(10)
        assert _is_alive(grandchild)
        assert all(_is_alive(child.process.pid) for child in children)
    assert not any(_is_alive(pid) for pid in [grandchild, *(child.process.pid for child in children)])


def test_an_exception_in_the_block_ends_them_too() -> None:
    started: list[int] = []

    def fail_inside() -> None:
        with Processes() as processes:
            started.append(processes.start("sleeper", SLEEPER).process.pid)
            raise RunError("boom")

    with pytest.raises(RunError, match="boom"):
        fail_inside()
    assert not _is_alive(started[0])


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    with Processes(grace=0.3) as processes:
        child = processes.start("stubborn", STUBBORN, log=tmp_path / "log")
        _first_line(tmp_path / "log")
        start = time.monotonic()
    assert 0.3 <= time.monotonic() - start < 3
    assert not _is_alive(child.process.pid)


def test_one_child_can_be_ended_alone() -> None:
    with Processes() as processes:
        first, second = processes.start("first", SLEEPER), processes.start("second", SLEEPER)
        processes.kill(first)
        assert not _is_alive(first.process.pid)
        assert _is_alive(second.process.pid)
        processes.check()


def test_processes_started_before_the_block_continue() -> None:
    other = subprocess.Popen(SLEEPER)
    try:
        with Processes() as processes:
            processes.start("sleeper", SLEEPER)
        assert _is_alive(other.pid)
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_to_the_parent_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    script = textwrap.dedent(f"""
        import signal, sys, time
        from deploy.federation.processes import Processes
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        with Processes() as processes:
            child = processes.start("sleeper", {SLEEPER!r})
            print(child.process.pid, flush=True)
            time.sleep(60)
    """)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(number)
        assert parent.wait(10) != 0
    end = time.monotonic() + 5
    while _is_alive(child):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_killed_child_takes_its_detached_grandchildren_along(tmp_path: Path) -> None:
    with Processes() as processes:
        other = processes.start("other", SLEEPER)
        detaching = processes.start("detaching", DETACHING, log=tmp_path / "log")
        grandchild = int(_first_line(tmp_path / "log"))
        detaching.process.wait(10)
        processes.kill(detaching)
        assert not _is_alive(grandchild)
        assert _is_alive(other.process.pid)


def test_an_ended_child_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    with Processes() as processes:
        command = [sys.executable, "-c", "import sys; print('no disk left'); sys.exit(3)"]
        child = processes.start("the SuperLink", command, log=tmp_path / "log")
        child.process.wait(10)
        with pytest.raises(RunError, match="the SuperLink ended with exit code 3") as caught:
            processes.check()
    assert "no disk left" in str(caught.value)


def test_a_missing_program_is_named() -> None:
    with Processes() as processes, pytest.raises(RunError, match="/no/such/program is missing"):
        processes.start("x", ["/no/such/program"])


def test_free_ports_are_free() -> None:
    require_free_port("127.0.0.1", free_port(), "--port")
