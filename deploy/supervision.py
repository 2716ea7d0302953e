"""Supervision: a run that lost its processes is submitted again and goes on from its checkpoint."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console

from common.errors import FedloomError, RunError
from deploy.report.text import first_line
from server.artifacts import RunDirectory
from server.result import Result

FIRST_PAUSE_SECONDS, PAUSE_GROWTH, MAX_PAUSE_SECONDS = 0.1, 4.0, 30.0  # before another attempt
MAX_ATTEMPTS = 6  # attempts in a row without a new checkpoint


class LostRunError(RunError):
    """Run whose processes ended or no longer answer; it can go on from its checkpoint."""


@dataclass
class Supervisor:
    """Repetition of attempts to train until one ends with a result.

    Args:
        folder: Folder of the run.
        console: Output of a line for each fault.
        sleep: Function that waits a number of seconds.
    """

    folder: RunDirectory
    console: Console
    sleep: Callable[[float], None] = time.sleep
    attempts: int = 0
    """Attempts without a new checkpoint."""

    def run(self, attempt: Callable[[bool], Result]) -> Result:
        """Return the result of the first attempt that has one.

        Args:
            attempt: Function that trains; its argument is True if the run is to go on from its checkpoint.

        Raises:
            RunError: Too many attempts in a row were lost, or the first could not start.
        """
        began = False
        while True:
            before = self._newest()
            try:
                return attempt(began)
            except LostRunError as fault:
                began = began or self._newest() >= 0
                self._wait(fault, before)
            except FedloomError as fault:
                if not began:
                    raise
                self._wait(fault, before)  # the restart itself failed

    def _wait(self, fault: FedloomError, before: int) -> None:
        """Report a fault and wait longer after each in a row.

        Raises:
            RunError: It was the last attempt.
        """
        newest = self._newest()
        self.attempts = 1 if newest > before else self.attempts + 1
        if self.attempts >= MAX_ATTEMPTS:
            raise RunError(f"{fault}\ngiven up after {self.attempts} attempts without progress") from fault
        pause = min(FIRST_PAUSE_SECONDS * PAUSE_GROWTH ** (self.attempts - 1), MAX_PAUSE_SECONDS)
        what = first_line(str(fault)).partition(";")[0]
        self.console.print(
            f"{what}; the run goes on from round {max(newest, 0)} in {pause:g} s",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )
        self.sleep(pause)

    def _newest(self) -> int:
        """Return the round of the newest checkpoint; -1 before the first."""
        return max(self.folder.checkpoints.rounds(), default=-1)
