"""Processes that a SuperLink of this machine starts for a run: SuperExec and ServerApp."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

LOOK_SECONDS = 0.5  # seconds between two looks at the processes
SUPEREXEC = "flower-superexec"


@dataclass
class ServerAppProcess:
    """Watch of the processes of one run; each is followed from the time at which it was first seen.

    Args:
        superlink: Process id of the SuperLink.
        holder: Function that returns the process that has the lock of the run's folder; 0 without one.
        clock: Monotonic seconds.
    """

    superlink: int
    holder: Callable[[], int]
    clock: Callable[[], float] = time.monotonic
    seen: dict[str, psutil.Process] = field(default_factory=dict)
    looked: float = 0.0

    def is_lost(self) -> bool:
        """Return True if one of the processes has ended; a ServerApp that has written its result has, too."""
        if self.clock() - self.looked < LOOK_SECONDS:
            return False
        self.looked = self.clock()
        if SUPEREXEC not in self.seen:
            self._find_superexec()
        if "app" not in self.seen and (app := _running(self.holder())) is not None:
            self.seen["app"] = app
        return not all(map(_is_alive, self.seen.values()))

    def _find_superexec(self) -> None:
        superlink = _running(self.superlink)
        for child in superlink.children() if superlink else ():
            with suppress(psutil.Error):  # it may end in the meantime
                if any(SUPEREXEC in word for word in child.cmdline()):
                    self.seen[SUPEREXEC] = child


def _running(pid: int) -> psutil.Process | None:
    """Return the process of that id; None if it has ended."""
    try:
        process = psutil.Process(pid) if pid else None
        return process if process and _is_alive(process) else None
    except psutil.Error:
        return None


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
