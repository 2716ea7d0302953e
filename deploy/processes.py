"""Child processes that end with their parent's work, also after errors and signals."""

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import psutil

from common.errors import ConfigError, RunError
from common.system_calls import adopt_orphans, ending_with_this

GRACE_SECONDS = 5.0  # seconds between SIGTERM and SIGKILL
TAIL_LINES = 12  # last lines of an ended process's log in its error


@dataclass(frozen=True)
class Child:
    """Child process started here."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path | None = None

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


class Processes:
    """Starter of child processes; leaving the `with` block ends them and all their descendants.

    Flower detaches some of its processes into their own sessions and loses track of others. Inside the block this process
    therefore adopts orphans (PR_SET_CHILD_SUBREAPER, if the system has it). SIGTERM and SIGHUP raise SystemExit, which
    unwinds the block; after SIGKILL the system ends the children. Enter it in the main thread.
    """

    def __init__(self, grace: float = GRACE_SECONDS) -> None:
        self._grace = grace
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
    ) -> Child:
        """Start a process in its own session, so that Ctrl-C reaches it through this process only.

        Args:
            name: Name in errors.
            command: Program and arguments.
            log: File to which its output is appended; None discards it.
            environment: Complete environment; None passes on that of this process.
            folder: Working folder.

        Raises:
            RunError: The program is missing.
        """
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
        if shutil.which(command[0]) is None:
            raise RunError(f"cannot start {name}; {command[0]} is missing")
        with open(log or os.devnull, "ab") as output:
            process = subprocess.Popen(
                ending_with_this(str(part) for part in command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if environment is None else dict(environment),
                cwd=folder,
                start_new_session=True,
            )
        child = Child(name, process, log)
        self._children.append(child)
        return child

    def check(self) -> None:
        """Raise RunError for the first child that has ended."""
        for child in self._children:
            child.check()

    def stop(self, *children: Child) -> None:
        """End the given children, or all processes of this block: SIGTERM, then SIGKILL after the grace."""
        doomed = self._descendants(children)
        for process in doomed:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        alive = _wait(doomed, self._grace)
        late = alive | self._descendants(children)  # also processes started in the meantime
        for process in late:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        _wait(late, self._grace)
        self._children = [child for child in self._children if child.process.poll() is None]

    def kill(self, child: Child) -> None:
        """Kill a child and its family at once, also what it started before it ended."""
        others = {psutil.Process(c.process.pid) for c in self._children if c != child and c.process.poll() is None}
        doomed = set(psutil.Process().children()) - self._strangers - others
        for process in [one for root in doomed for one in (root, *_below(root))]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        _wait(doomed, self._grace)
        self._children.remove(child)

    def _descendants(self, children: Sequence[Child]) -> set[psutil.Process]:
        roots = [psutil.Process()] if not children else []
        descendants: set[psutil.Process] = set()
        for child in children:
            with suppress(psutil.NoSuchProcess):
                roots.append(psutil.Process(child.process.pid))
        for root in roots:
            descendants |= {root, *_below(root)}
        return descendants - self._strangers - {psutil.Process()}


def _below(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return list(process.children(recursive=True))
    return []


def free_port() -> int:
    """Return a currently unused TCP port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def require_free_port(host: str, port: int, option: str) -> None:
    """Check that a port is free to listen on.

    Raises:
        ConfigError: The port is taken; names the option that changes it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(f"port {port} of {host}: {error.strerror}; choose another with {option}") from None


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _wait(processes: set[psutil.Process], seconds: float) -> set[psutil.Process]:
    """Wait until all have ended and been reaped; return those still alive after that time."""
    end = time.monotonic() + seconds
    _, alive = psutil.wait_procs(processes, timeout=max(0.0, end - time.monotonic()))
    return set(alive)
