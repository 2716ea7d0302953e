"""Locks of folders against other processes; a lock file names the process that holds it."""

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOG = logging.getLogger(__name__)

NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)
"""Errors of file systems without locks."""


class HeldError(Exception):
    """Lock that another process holds.

    Args:
        pid: Process that holds it; 0 if unknown.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(f"process {pid}" if pid else "another process")


@contextmanager
def exclusive(path: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock of a file until the block or this process ends; on file systems without locks, warn and go on.

    Args:
        path: The lock file, which is created if missing.
        wait: Seconds to wait for another process that is about to end.

    Raises:
        HeldError: Another process holds the lock.
    """
    from filelock import FileLock, Timeout  # its import takes as long as a light command

    lock = FileLock(path, wait, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise HeldError(holder(path)) from None
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno not in NO_LOCKS:
            raise
        LOG.warning("%s cannot be locked: %s", path.parent, error)
    try:
        path.write_text(str(os.getpid()), "ascii")
        yield
    finally:
        with suppress(OSError):  # the folder was removed
            os.truncate(path, 0)
        lock.release()


def holder(path: Path) -> int:
    """Return the process that holds or held the lock of a file; 0 if it was released or never held."""
    with suppress(OSError, ValueError):
        return int(path.read_text("ascii"))
    return 0
