"""Kills of parties that share one Python process: each keeps the files that it had at that moment."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

SERVER = "server"


class KilledError(BaseException):
    """End of a process; no handler of its own code sees it."""


def kind_of(process: str) -> str:
    """Return `server`, `helper` or `client`."""
    return process.partition("-")[0]


@dataclass
class KillSwitch:
    """Moments at which processes can be killed, counted for each kind of process.

    A moment is before and after each message, and before each file that replaces another.

    Args:
        folder: Folder with one folder per process, which holds all its files.
        due: Kind of process -> numbers of the moments at which one is killed.
    """

    folder: Path
    due: Mapping[str, Sequence[int]] = field(default_factory=dict)
    moments: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Begin with the server's process."""
        self._running, self._is_dying = [SERVER], False

    @contextmanager
    def run_as(self, process: str) -> Iterator[None]:
        """Count moments of the block as those of another process."""
        self._running.append(process)
        try:
            yield
        finally:
            self._running.pop()

    def pass_moment(self) -> None:
        """Count a moment of the running process, and kill it if it is due.

        Raises:
            KilledError: The process is killed; its files are those of this moment after `restore`.
        """
        process = self._running[-1]
        if self._is_dying:
            return
        kind = kind_of(process)
        self.moments[kind] += 1
        if self.moments[kind] in self.due.get(kind, ()):
            self.kills[kind] += 1
            self._is_dying = True
            shutil.copytree(self.folder / process, self._kept(process), symlinks=True)
            raise KilledError(process)

    def restore(self, process: str) -> None:
        """Put back the files that a killed process had; what it did while it ended is lost."""
        shutil.rmtree(self.folder / process)
        self._kept(process).rename(self.folder / process)
        self._is_dying = False

    @contextmanager
    def watch_files(self) -> Iterator[None]:
        """Count a moment before each file that replaces another."""
        replace: Callable[..., None] = os.replace

        def moment_before(*arguments: Any, **named: Any) -> None:
            self.pass_moment()
            replace(*arguments, **named)

        with patch("os.replace", moment_before):
            yield

    def _kept(self, process: str) -> Path:
        return self.folder / f".{process}"
