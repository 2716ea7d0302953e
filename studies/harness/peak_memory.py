"""Largest memory of a process and of those that it started."""

import threading
from contextlib import suppress
from pathlib import Path

import psutil

MEGABYTE, SAMPLE_SECONDS = 2**20, 0.5


class PeakMemory(threading.Thread):
    """Largest memory of this process and all that it started, sampled; pages that they share count once."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.first, self.peak, self._ended = _proportional(), 0.0, threading.Event()

    def run(self) -> None:
        """Sample until `stop`."""
        while not self._ended.wait(SAMPLE_SECONDS):
            self.peak = max(self.peak, _proportional())

    def stop(self) -> None:
        """Sample once more, then end."""
        self._ended.set()
        self.peak = max(self.peak, _proportional())


def _proportional() -> float:
    """Return the memory of this process and all that it started in MB."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with suppress(psutil.Error):
            total += process.memory_full_info().pss / MEGABYTE
    return total


def peak_megabytes() -> float:
    """Return the largest resident memory of this process so far, in MB."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
