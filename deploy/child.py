"""Child process and its end."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import RunError
from common.system_calls import ending_with_this
from deploy.fork_server import Copy

TAIL_LINES = 12  # last lines of an ended process's log in its error


@dataclass(frozen=True)
class Child:
    """Child process started here.

    Args:
        name: Name in errors.
        process: The process.
        log: File of its output.
        again: Function that starts the same program again.
    """

    name: str
    process: subprocess.Popen[bytes] | Copy
    log: Path | None
    again: Callable[[], "Child"]

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


def start_program(
    words: Sequence[str], environment: Mapping[str, str], folder: Path | None, log: Path | None
) -> subprocess.Popen[bytes]:
    """Start a program in its own session; the system kills it when this process ends."""
    with open(log or os.devnull, "ab") as output:
        return subprocess.Popen(
            ending_with_this(words),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
