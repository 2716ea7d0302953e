"""Copies of the fork server: the order to start one, and the child that runs."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LOST = -1
"""Exit code of a copy whose end somebody else has observed."""


@dataclass(frozen=True)
class CopyOrder:
    """Copy to start.

    Args:
        name: Name of the process, of which Linux shows 15 bytes.
        module: Module to run.
        arguments: Its arguments.
        environment: Complete environment.
        folder: Working folder.
        log: File to which its output is appended.
    """

    name: str
    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    log: str


@dataclass
class Copy:
    """Running copy, a child of this process."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        """Return its exit code, or the negative number of the signal that ended it; None while it runs."""
        if self.returncode is None:
            try:
                found, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if found else None
            except ChildProcessError:
                self.returncode = LOST
        return self.returncode
