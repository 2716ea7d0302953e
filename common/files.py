"""Atomic file replacement, versions of formats, room on disks, and locks against other processes."""

import errno
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from common.errors import ConfigError, FullDiskError, NewerFormatError, StateError
from common.text import size

LOG = logging.getLogger(__name__)


def expand_home(path: Path) -> Path:
    """Return a path with the home folder of this user in place of a leading `~`.

    Raises:
        ConfigError: The user has none.
    """
    try:
        return path.expanduser()
    except RuntimeError:
        raise ConfigError(f"no home folder for {path}; set HOME, or name a folder with --state-dir") from None


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


def append_whole(path: Path, lines: bytes, *, mode: int = 0o600) -> None:
    """Append whole lines, or nothing; a new file has permissions `mode`.

    Raises:
        OSError: The lines do not fit.
    """
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, mode)
    try:
        before = os.fstat(handle).st_size
        if os.write(handle, lines) < len(lines):  # the disk is full now
            os.ftruncate(handle, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(handle)


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


FORMAT = "format_version"
"""Key of the version of a stored file's format; files without it have version 1."""


def check_format(name: Path | str, found: object, newest: int = 1) -> int:
    """Return the version of a stored file's format, which this program reads.

    Args:
        name: Name of the file in messages.
        found: Version in the file, as a number or its text.
        newest: Newest version that this program reads.

    Raises:
        NewerFormatError: A newer program wrote the file.
        StateError: The version is not a positive number.
    """
    text = str(found)
    if not (text.isascii() and text.isdecimal()) or int(text[:9]) < 1:
        raise StateError(f"{name} is damaged: its format is {text[:20]!r}; restore it from a backup")
    if int(text[:9]) > newest:
        raise NewerFormatError(
            f"{name} was written by a newer fedloom (format {text[:9]}; this one reads up to {newest}); update fedloom"
        )
    return int(text)


LEAST_ROOM = 64 * 2**20
"""Free bytes of a disk without which no round begins."""

DISK_FULL = "disk full"
"""Beginning of every text about a disk without room."""

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""Errors of full disks."""

LOOK_SECONDS = 1.0
"""Seconds between two looks at a full disk."""


def free_bytes(folder: Path) -> int:
    """Return the free bytes of the disk of a folder, which may not exist yet."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def find_shortage(*folders: Path, needed: int = LEAST_ROOM) -> str:
    """Return a text about the fullest disk of these folders, without a path; empty if there is room."""
    least = min(map(free_bytes, folders))
    return "" if least >= needed else f"{DISK_FULL}: {size(least)} are free, {size(needed)} needed for a round"


def require_room(*folders: Path) -> None:
    """Accept work that writes to these folders.

    Raises:
        FullDiskError: A disk has too little room.
    """
    if shortage := find_shortage(*folders):
        raise FullDiskError(f"{shortage}; waiting for room")


def await_room(
    *folders: Path, report: Callable[[str], None], needed: int = LEAST_ROOM, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Wait until the disks of these folders have the bytes needed; report once that the wait begins."""
    if shortage := find_shortage(*folders, needed=needed):
        report(shortage)
        while find_shortage(*folders, needed=needed):
            sleep(LOOK_SECONDS)


def be_patient(write: Callable[[], object], path: Path, *, waits: bool = True) -> object:
    """Repeat a write to a file until the disk has room, if it `waits`; nothing else goes on meanwhile."""
    is_waiting = False
    while True:
        try:
            return write()
        except OSError as error:
            if error.errno not in NO_ROOM or not waits:
                raise
            if not is_waiting:
                LOG.warning("disk full: waiting for room to write %s", path)
            is_waiting = True
            time.sleep(LOOK_SECONDS)


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
        be_patient(lambda: path.write_text(str(os.getpid()), "ascii"), path)
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
