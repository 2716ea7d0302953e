"""Grid of a simulation that records time and memory around each exchange."""

import os
import statistics
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import psutil
from flwr.app import Message

from benchmarks.harness.peak_memory import MEGABYTE, peak_megabytes
from deploy.simulation import InProcessGrid


class Mark(NamedTuple):
    """State of this process before or after an exchange."""

    kind: str
    messages: int
    cpu: float
    """Processor seconds of this process and of its copies that have ended."""
    seconds: float
    peak: float
    """Largest resident memory of this process so far, in MB."""
    resident: float
    """Resident memory of this process, in MB."""


class MeasuredGrid(InProcessGrid):
    """Grid that records times before and after each exchange."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.marks: list[Mark] = []

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Answer the messages between two marks."""
        messages = list(messages)
        kind = messages[0].metadata.message_type if messages else ""
        self._mark(kind, len(messages))
        identities = super().push_messages(messages)
        self._mark(f"after {kind}", len(messages))
        return identities

    def spans(self, kind: str, end: str) -> tuple[float, float]:
        """Return the medians of CPU milliseconds a message and of seconds, from an exchange to the next `end`."""
        found = []
        for k, start in enumerate(self.marks):
            until = [mark for mark in self.marks[k + 1 :] if mark.kind == end]
            if start.kind == kind and until:
                found.append((1000 * (until[0].cpu - start.cpu) / start.messages, until[0].seconds - start.seconds))
        cpu, seconds = zip(*(found[1:] or found), strict=True)
        return statistics.median(cpu), statistics.median(seconds)

    def _mark(self, kind: str, count: int) -> None:
        resident = psutil.Process().memory_info().rss / MEGABYTE
        self.marks.append(Mark(kind, count, sum(os.times()[:4]), time.monotonic(), peak_megabytes(), resident))
