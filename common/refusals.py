"""Counts of refused requests by class, with one line of log a minute for each class and caller."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from common.text import printable

SECONDS = 60.0
"""Time between two lines of a class about a caller."""

CALLERS = 8
"""Callers of a class with lines of their own; further ones share a line, as strangers have many keys."""

METRIC = "fedloom_refused_total"
"""Name of the counter in the text form of Prometheus."""


@dataclass
class _Caller:
    """Caller of a class: its last refusal, the time of its next line, and refusals since its last one."""

    text: str
    next_line: float
    since: int = 0


class Refusals:
    """Counter of refused requests; any thread may count.

    Classes are fixed texts of the program. Addresses and keys come from strangers.

    Args:
        report: Receiver of a line, such as a logger's `warning`.
        clock: Monotonic seconds.
    """

    def __init__(self, report: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._report, self._clock, self._lock = report, clock, threading.Lock()
        self._counts, self._callers = Counter[str](), dict[str, dict[tuple[str, str], _Caller]]()

    def count(self, kind: str, address: str = "", key: str = "", detail: str = "") -> None:
        """Count a refusal, and report its caller if its last line about this class is a minute old.

        Args:
            kind: Class of the refusal.
            address: Address of the caller with its port; empty if unknown.
            key: Key or node of the caller; empty if unknown.
            detail: Fault of this request.
        """
        names = ", ".join(f"{name} {printable(text, 80)}" for name, text in (("from", address), ("key", key)) if text)
        text = (f" ({names})" if names else "") + (f": {printable(detail, 200)}" if detail else "")
        with self._lock:
            self._counts[kind] += 1
            callers, one = self._callers.setdefault(kind, {}), (address.rpartition(":")[0] or address, key)
            if one not in callers and len(callers) >= CALLERS:
                one, text = ("", ""), " (further callers)"
            caller = callers.setdefault(one, _Caller(text, self._clock()))
            caller.text, caller.since = text, caller.since + 1
        self.report()

    def report(self) -> None:
        """Report the callers whose next line is due, and forget those with nothing to report."""
        with self._lock:
            now, lines = self._clock(), list[str]()
            for kind, callers in self._callers.items():
                for one, caller in [item for item in callers.items() if item[1].next_line <= now]:
                    if not caller.since:
                        del callers[one]
                        continue
                    counts = f"{caller.since} since the last line, {self._counts[kind]} in all"
                    lines.append(f"refused: {kind}{caller.text}; {counts}")
                    caller.since, caller.next_line = 0, now + SECONDS
        for line in lines:
            self._report(line)

    def to_text(self) -> str:
        """Return the counts in the text form of Prometheus."""
        with self._lock:
            counts = sorted(self._counts.items())
        lines = [f"# HELP {METRIC} Refused requests by class.", f"# TYPE {METRIC} counter"]
        return "\n".join((*lines, *(f'{METRIC}{{class="{kind}"}} {number}' for kind, number in counts), ""))
