"""Observer of a resident helper."""

import time
from collections.abc import Callable

from client.helper.book import HOUR, Book
from client.node.observer import Observer
from common.text import printable


class HelperObserver(Observer):
    """Log of a helper's connection; keys of forgotten runs are deleted hourly while no message waits.

    Args:
        address: Address of the server.
        helper: Name of the helper in its log.
        book: Keys of the helper.
        days: Days without a message after which a run's keys are deleted.
        clock: Monotonic seconds.
    """

    def __init__(
        self, address: str, helper: str, book: Book, days: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(address, helper)
        self._book, self._days, self._clock, self._looked = book, days, clock, float("-inf")

    def idle(self) -> None:
        """Delete the keys of runs without a message for too long."""
        now = self._clock()
        if now - self._looked < HOUR:
            return
        self._looked = now
        for run in self._book.forget(self._days):
            self.report(f"run '{printable(run, 80)}': keys deleted after {self._days:g} days without a message")
