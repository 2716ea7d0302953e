"""File that several processes append whole lines to."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def append_whole(path: Path, lines: bytes) -> None:
    """Append whole lines, or nothing.

    Raises:
        OSError: The lines do not fit.
    """
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        before = os.fstat(handle).st_size
        if os.write(handle, lines) < len(lines):  # the disk is full now
            os.ftruncate(handle, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(handle)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Exclude other writers of the folder; the lock ends with the file handle."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
