"""Atomic file replacement, and locks of folders against other processes."""

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Replace a file and flush it to disk; it has permissions `mode` from its first byte on."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.unlink(missing_ok=True)
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
        put_in_place(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def remove_drafts(*folders: Path) -> None:
    """Remove drafts that killed processes left in folders; no other process may write there at the time."""
    for folder in folders:
        for draft in folder.glob(".*.tmp"):
            draft.unlink(missing_ok=True)


def put_in_place(draft: Path, path: Path) -> None:
    """Flush a finished file to disk, then give it its name in the same folder."""
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def close_to_others() -> None:
    """Close new files of this process and its children to other users; FEDLOOM_UMASK opens them."""
    try:
        mask = int(os.environ.get("FEDLOOM_UMASK", "077"), 8) & 0o777
    except ValueError:
        mask = 0o077
    os.umask(mask)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
    """Hold the lock of a file until the block or this process ends; warn where none is supported.

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
    except (OSError, NotImplementedError) as error:  # filelock raises either on file systems without locks
        if isinstance(error, OSError) and error.errno not in NO_LOCKS:
            raise
        LOG.warning("%s cannot be locked: %s", path.parent, getattr(error, "strerror", None) or error)
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
