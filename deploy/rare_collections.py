"""Garbage collections in a simulation: rare, and without its clients."""

import gc
from typing import Self

RARELY = 50_000, 20, 100
"""Thresholds of the collector; a round leaves few objects in cycles."""


class RareCollections:
    """Context in which Python's garbage collector can pass over all objects of that time, and work rarely.

    Without it, a collection visits every object of every client in each round.
    """

    _thresholds: tuple[int, int, int] | None = None

    def __enter__(self) -> Self:
        self._thresholds = gc.get_threshold()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._thresholds:
            gc.set_threshold(*self._thresholds)
        gc.unfreeze()

    def spare_collector(self) -> None:
        """Leave the objects of this time out of collections until the context ends; outside it, do nothing."""
        if self._thresholds:
            gc.freeze()
            gc.set_threshold(*RARELY)
