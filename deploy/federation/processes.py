"""Child processes that end with their parent's work, also after errors and signals."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import psutil

from common.errors import RunError
from common.system_calls import adopt_orphans, ending_with_this
from deploy.federation.fork_server import Copy, CopyOrder, ForkServer
from server.record.process import record_process

TAIL_LINES = 12  # last lines of an ended process's log in its error


@dataclass(frozen=True)
class Child:
    """Child process started here."""

    name: str
    process: subprocess.Popen[bytes] | Copy
    log: Path | None
    again: Callable[[], "Child"]

    def check(self) -> None:
        """Raise RunError, with the end of its log, if the process has ended."""
        code = self.process.poll()
        if code is not None:
            raise RunError(f"{self.name} ended with exit code {code}{self._log_tail()}")

    def _log_tail(self) -> str:
        if self.log is None or not self.log.is_file():
            return ""
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return "\n".join([f"; the end of {self.log}:", *lines])


GRACE_SECONDS = 5.0  # seconds between SIGTERM and SIGKILL


class Processes:
    """Starter of child processes; leaving the `with` block ends them and all their descendants.

    Flower detaches some of its processes into their own sessions and loses track of others. Inside the block this process
    therefore adopts orphans (PR_SET_CHILD_SUBREAPER, if the system has it). SIGTERM and SIGHUP raise SystemExit, which
    unwinds the block; after SIGKILL the system ends the children. Enter it in the main thread.

    Args:
        grace: Seconds between SIGTERM and SIGKILL.
        fork_server: Fork server, of which modules started here are copies; None to start each anew.
    """

    def __init__(self, grace: float = GRACE_SECONDS, fork_server: ForkServer | None = None) -> None:
        self._grace, self._fork_server = grace, fork_server
        self._children: list[Child] = []
        self._strangers: set[psutil.Process] = set()
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Start to adopt orphans, and convert signals to SystemExit."""
        adopt_orphans(True)
        self._strangers = set(psutil.Process().children(recursive=True))
        if threading.current_thread() is threading.main_thread():
            self._handlers = {n: signal.signal(n, _leave) for n in (signal.SIGTERM, signal.SIGHUP)}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """End all processes; a second Ctrl-C does not interrupt this."""
        if self._handlers:
            self._handlers |= {signal.SIGINT: signal.getsignal(signal.SIGINT)}
            for number in self._handlers:
                signal.signal(number, signal.SIG_IGN)
        try:
            self.stop()
        finally:
            adopt_orphans(False)
            for number, handler in self._handlers.items():
                signal.signal(number, handler)

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        records: Path | None = None,
        preload: bool = True,
    ) -> Child:
        """Start a process in its own session, so that Ctrl-C reaches it through this process only.

        Args:
            name: Name in errors.
            command: Program and arguments.
            log: File to which its output is appended; None discards it.
            environment: Complete environment; None passes on that of this process.
            folder: Working folder.
            records: Folder in which the process is recorded.
            preload: False for a process that shall not begin with the imports of the fork server.

        Raises:
            RunError: The program is missing.
        """
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
        if shutil.which(command[0]) is None:
            raise RunError(f"cannot start {name}; {command[0]} is missing")
        words, variables = [str(word) for word in command], dict(os.environ if environment is None else environment)
        process: subprocess.Popen[bytes] | Copy | None = None
        if preload and self._fork_server and words[:2] == [sys.executable, "-m"]:
            files = str(folder or Path.cwd()), str(log.resolve() if log else os.devnull)
            order = CopyOrder(name.removeprefix("the "), words[2], words[3:], variables, *files)
            process = self._fork_server.copy(order)
        if process is None:
            with open(log or os.devnull, "ab") as output:
                process = subprocess.Popen(
                    ending_with_this(words),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=variables,
                    cwd=folder,
                    start_new_session=True,
                )
        again = partial(
            self.start, name, command, log=log, environment=variables, folder=folder, records=records, preload=preload
        )
        child = Child(name, process, log, again)
        self._children.append(child)
        if records is not None:
            record_process(records, name, child.process.pid)
        return child

    def check(self) -> None:
        """Raise RunError for the first child that has ended."""
        for child in self._children:
            child.check()

    def take_ended(self) -> list[Child]:
        """Return the children that have ended since the last call."""
        ended = [child for child in self._children if child.process.poll() is not None]
        self._children = [child for child in self._children if child not in ended]
        return ended

    def stop(self) -> None:
        """End all processes of this block: SIGTERM, then SIGKILL after the grace."""
        doomed = self._descendants()
        for process in doomed:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        alive = _wait(doomed, self._grace)
        late = alive | self._descendants()  # also processes started in the meantime
        for process in late:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        _wait(late, self._grace)
        self._children = [child for child in self._children if child.process.poll() is None]

    def kill(self, *children: Child) -> None:
        """Kill children and their families at once, also what they started before they ended."""
        self._children = [child for child in self._children if child not in children]
        spared = {child.process.pid for child in self._children if child.process.poll() is None}
        spared |= {self._fork_server.pid} if self._fork_server else set()
        doomed = {one for one in psutil.Process().children() if one.pid not in spared} - self._strangers
        for process in [one for root in doomed for one in (root, *_below(root))]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        _wait(doomed, self._grace)
        for child in children:
            child.process.poll()

    def _descendants(self) -> set[psutil.Process]:
        return {*_below(psutil.Process())} - self._strangers


def _below(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return list(process.children(recursive=True))
    return []


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _wait(processes: set[psutil.Process], seconds: float) -> set[psutil.Process]:
    """Wait until all have ended and been reaped; return those still alive after that time."""
    return {*psutil.wait_procs(processes, timeout=seconds)[1]}
