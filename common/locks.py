"""Locks of folders against other processes; a lock file names the process that holds it."""

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

LOG = logging.getLogger(__name__)
PAUSE_SECONDS = 0.05  # seconds between two attempts


class HeldError(Exception):
    """Lock that another process holds.

    Args:
        pid: Process that holds it; 0 if unknown.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(f"process {pid}" if pid else "another process")


@contextmanager
def exclusive(path: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock of a file until the block or this process ends.

    Args:
        path: The lock file, which is created if missing.
        wait: Seconds to wait for another process that is about to end.

    Raises:
        HeldError: Another process holds the lock.
    """
    with path.open("a+") as file:
        _acquire(file, path, time.monotonic() + wait)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def holder(path: Path) -> int:
    """Return the process that holds or held the lock of a file; 0 if it was released or never held."""
    with suppress(OSError, ValueError):
        return int(path.read_text("ascii"))
    return 0


def _acquire(file: IO[str], path: Path, end: float) -> None:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise HeldError(holder(path)) from None
            time.sleep(PAUSE_SECONDS)
        except OSError as error:  # some shared file systems have no locks
            LOG.warning("%s cannot be locked: %s", path.parent, error.strerror)
            return
        else:
            return
