"""Control files in a state folder: pause, leave, forget, and the running processes.

A client reads them between two messages. No port and no socket is needed.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from common.errors import ASKS_FORGETTING, PAUSED_BY_OWNER, RefusedError
from common.files import remove_drafts

PAUSED = "paused"
"""File that exists while the owner has paused all clients of the state folder."""

DELIVERED = "delivered"
"""Content of a client's request to be forgotten once the server has it."""

LOCK_ATTEMPTS, LOCK_PAUSE_SECONDS = 5, 0.02


@dataclass(frozen=True)
class RunningClient:
    """Client process, as its pid file names it."""

    pid: int
    client: str
    server: str
    started: str
    """UTC by this machine's clock, ISO 8601."""


class OwnerControl:
    """Control files of one client process; a context manager that holds the pid file's lock."""

    def __init__(self, folder: Path, running: RunningClient) -> None:
        self._folder, self._running = folder, running
        self._pid_file: IO[bytes] | None = None
        self._has_asked = False

    def __enter__(self) -> "OwnerControl":
        """Write the pid file and lock it; without the lock, the other process of the same name keeps the file.

        Drafts in the client's folder are of killed processes once the lock is held; they are removed.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._pid_path
        handle = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        if not _lock(handle):
            handle.close()
            return self
        for old in (_leave_path(path), _forget_path(path)):  # of an earlier process
            old.unlink(missing_ok=True)
        handle.truncate()
        handle.write(json.dumps(asdict(self._running)).encode())
        handle.flush()
        self._pid_file = handle
        if self._running.client:  # else its folder is that of all clients
            remove_drafts(*(self._folder / self._running.client).glob("**/"))
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the pid file, and the request to leave that it answered."""
        if self._pid_file:
            path = self._pid_path
            path.unlink(missing_ok=True)
            _leave_path(path).unlink(missing_ok=True)
            self._pid_file.close()

    @property
    def is_alone(self) -> bool:
        """True if no other process of the same name runs in this state folder."""
        return self._pid_file is not None

    def check_not_paused(self) -> None:
        """Accept work unless the owner has paused the client, or wants it to be forgotten.

        Raises:
            RefusedError: The client is paused, or asks the server to forget it.
        """
        self.check_not_forgotten()
        if is_paused(self._folder):
            raise RefusedError(PAUSED_BY_OWNER)

    def check_not_forgotten(self) -> None:
        """Accept an invitation unless the owner wants the client to be forgotten.

        Raises:
            RefusedError: The client asks the server to forget it.
        """
        self._has_asked = _forget_path(self._pid_path).exists()
        if self._has_asked:
            raise RefusedError(ASKS_FORGETTING)

    def acknowledge(self) -> None:
        """Note that the server has received the last reply, which may have asked it to forget this client."""
        if self._has_asked:
            _forget_path(self._pid_path).write_text(DELIVERED, "ascii")

    @property
    def leaves(self) -> bool:
        """True if the owner has asked this client to leave, or the server was asked to forget it."""
        return _leave_path(self._pid_path).exists() or was_delivered(self._folder, self._running)

    @property
    def _pid_path(self) -> Path:
        return _pid_path(self._folder, self._running.client)


def is_paused(folder: Path) -> bool:
    """Return True if the clients of a state folder are paused."""
    return (folder / PAUSED).exists()


def pause(folder: Path) -> None:
    """Pause all clients of a state folder, also those that start later."""
    os.close(os.open(folder / PAUSED, os.O_WRONLY | os.O_CREAT, 0o600))


def resume(folder: Path) -> bool:
    """End a pause; return False if there was none."""
    was_paused = is_paused(folder)
    (folder / PAUSED).unlink(missing_ok=True)
    return was_paused


def leave(folder: Path, *, forgets: bool = False) -> list[RunningClient]:
    """Ask all running clients of a state folder to leave; return them.

    With `forgets`, each asks the server to forget it in its next reply, and leaves after that.
    """
    found = list(running_clients(folder))
    for running in found:
        path = _pid_path(folder, running.client)
        file = _forget_path(path) if forgets else _leave_path(path)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
    return found


def was_delivered(folder: Path, running: RunningClient) -> bool:
    """Return True if the server has received the request to forget a client."""
    path = _forget_path(_pid_path(folder, running.client))
    return path.exists() and path.read_text("ascii") == DELIVERED


def withdraw_request(folder: Path, running: RunningClient) -> None:
    """Remove the request to forget a client, delivered or not."""
    _forget_path(_pid_path(folder, running.client)).unlink(missing_ok=True)


def running_clients(folder: Path) -> Iterator[RunningClient]:
    """Yield the clients whose processes hold the locks of their pid files; other pid files are stale."""
    for path in sorted(folder.glob("*.pid")):
        try:
            with path.open("rb") as file:
                if _is_locked(file):
                    stored: dict[str, Any] = json.loads(file.read())
                    yield RunningClient(**stored)
        except (OSError, ValueError, TypeError):
            continue


def _lock(file: IO[bytes]) -> bool:
    """Lock a pid file; return False if another client holds the lock. Readers hold it for a moment only."""
    for _ in range(LOCK_ATTEMPTS):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE_SECONDS)
        else:
            return True
    return False


def _is_locked(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _pid_path(folder: Path, client: str) -> Path:
    return folder / f"{client or 'client'}.pid"


def _forget_path(pid_path: Path) -> Path:
    return pid_path.with_suffix(".forget")


def _leave_path(pid_path: Path) -> Path:
    return pid_path.with_suffix(".leave")
