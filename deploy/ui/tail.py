"""Events of a run as they are written, read in pieces of limited size."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from common.errors import DataError
from deploy.ui.run_files import open_file
from server.events import Event, event_from_line

FILE = "metrics.jsonl"
MAX_LINE = 1_000_000  # bytes of one event
MAX_EVENTS = 500  # of one batch
MAX_BATCH = 1_000_000  # bytes of events, of one batch
MAX_READ = 2_000_000  # bytes read for one batch; lines that are skipped count too


@dataclass(frozen=True)
class Batch:
    """Events that were read at once.

    Args:
        events: Events in order.
        is_reset: True if the file became shorter; the events start at its beginning.
        has_more: True if the file holds further events.
        skipped: Number of lines so far that are too long or no events.
    """

    events: list[Event]
    is_reset: bool
    has_more: bool
    skipped: int


@dataclass
class Tail:
    """Reader of one run's events from an offset on.

    Args:
        root: Folder of runs.
        run: Id of the run.
        offset: Bytes of the file before the next event.
    """

    root: Path
    run: str
    offset: int = 0
    skipped: int = 0
    _is_inside: bool = field(default=False, init=False)
    """True if the offset is inside a line that is too long."""

    def is_behind(self) -> bool:
        """Return True if the file's size is not the offset."""
        try:
            return os.lstat(self.root / self.run / FILE).st_size != self.offset
        except OSError:
            return self.offset != 0

    def read(self) -> Batch:
        """Return the next events."""
        file = open_file(self.root, self.run, FILE)
        size = os.fstat(file.fileno()).st_size if file else 0
        is_reset = size < self.offset
        if is_reset:
            self.offset, self.skipped, self._is_inside = 0, 0, False
        if file is None:
            return Batch([], is_reset, False, self.skipped)
        events: list[Event] = []
        begin, taken = self.offset, 0
        with file:
            file.seek(self.offset)
            while len(events) < MAX_EVENTS and taken < MAX_BATCH and self.offset - begin < MAX_READ:
                line = file.readline(MAX_LINE + 1)
                if not self._accept(line):
                    return Batch(events, is_reset, False, self.skipped)
                for event in self._parse(line):
                    events.append(event)
                    taken += len(line)
        return Batch(events, is_reset, self.offset < size, self.skipped)

    def _accept(self, line: bytes) -> bool:
        """Move the offset behind the line; return False at the end of the file or at a torn line."""
        is_whole, is_long = line.endswith(b"\n"), len(line) > MAX_LINE
        if not line or not (is_whole or is_long or self._is_inside):
            return False
        self.offset += len(line)
        return True

    def _parse(self, line: bytes) -> Iterator[Event]:
        was_inside, is_whole = self._is_inside, line.endswith(b"\n")
        self._is_inside = not is_whole
        if was_inside:
            return
        if not is_whole or len(line) > MAX_LINE:
            self.skipped += 1
            return
        try:
            yield event_from_line(line)
        except DataError:
            self.skipped += bool(line.strip())
