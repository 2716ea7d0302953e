"""Grid of a simulation that records time and memory around each exchange."""

import os
import statistics
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import psutil
from flwr.app import Message

from common.wire.messages import ENROL, EVALUATE, TRAIN
from deploy.simulation.grid import InProcessGrid
from studies.harness.peak_memory import MEGABYTE, peak_megabytes


class Mark(NamedTuple):
    """State of this process before or after an exchange."""

    kind: str
    messages: int
    cpu: float
    """Processor seconds of this process and of its copies."""
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

    def costs(self) -> dict[str, float]:
        """Return medians: processor milliseconds of an update, an enrolment and an evaluation, and seconds."""
        (update, seconds), (enrolment, enrol) = self.spans(TRAIN, TRAIN), self.spans(ENROL, f"after {ENROL}")
        evaluation, _ = self.spans(EVALUATE, f"after {EVALUATE}")
        milliseconds = {"update": update, "enrolment": enrolment, "evaluation": evaluation}
        named = {f"ms_cpu_per_{part}": value for part, value in milliseconds.items()}
        return {**named, "seconds_per_round": seconds, "seconds_enrol": enrol}

    def trained(self) -> list[Mark]:
        """Return the marks after the rounds of training."""
        return [mark for mark in self.marks if mark.kind == f"after {TRAIN}"]

    def memory(self) -> dict[str, Any]:
        """Return megabytes after each round, what later rounds leave, and the growth of the peak."""
        after = self.trained()
        return {
            "mb_left_by_rounds": after[-1].resident - after[0].resident,
            "growth_after_3": after[-1].peak / after[min(2, len(after) - 1)].peak,
            "mb_of_rounds": [round(mark.resident, 1) for mark in after],
        }

    def _mark(self, kind: str, count: int) -> None:
        resident = psutil.Process().memory_info().rss / MEGABYTE
        shards = sum(sum(child.cpu_times()[:2]) for child in psutil.Process().children())
        cpu = sum(os.times()[:4]) + shards
        self.marks.append(Mark(kind, count, cpu, time.monotonic(), peak_megabytes(), resident))
