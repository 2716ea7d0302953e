"""Log lines on long solves."""

import logging
import time

log = logging.getLogger("fedloom.server")

PROGRESS_SECONDS = 5.0
"""Least time between two lines on the progress of a solve."""


class Progress:
    """Log lines on a long solve of `noun`."""

    def __init__(self, noun: str) -> None:
        self._noun, self._last = noun, time.monotonic()

    def __call__(self, step: str, share: float) -> None:
        """Log a step and the share of the solve's time so far, unless the last line is recent."""
        if (now := time.monotonic()) - self._last > PROGRESS_SECONDS:
            log.info("solving %s: %s, %.0f %%", self._noun, step, 100 * share)
            self._last = now
