"""Events of runs for the live page: read from their files in pieces, sent as server-sent events."""

import asyncio
import json
import os
import re
import stat
import time
import tomllib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from common.errors import ConfigError, DataError
from common.options import leaves
from deploy.pages.metrics import measure
from deploy.pages.progress import POLL_SECONDS
from server.record.events import Event, Round, Start, event_from_line, event_to_line
from server.record.folder import RunDirectory

MAX_BYTES = 16_000_000
"""Size above which a whole file is not read."""

MAX_CONFIG = 1_000_000  # bytes of config.toml


def is_run_id(name: str) -> bool:
    """Return True if the name may be that of a run's folder."""
    try:
        RunDirectory(Path(), name)
    except ConfigError:
        return False
    return True


def run_ids(root: Path) -> list[str]:
    """Return the names of all run folders; links are left out."""
    try:
        with os.scandir(root) as entries:
            return [one.name for one in entries if is_run_id(one.name) and one.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def open_file(root: Path, run: str, name: str) -> BinaryIO | None:
    """Open a file of a run; None if it is missing, not a regular file, or behind a link.

    Args:
        root: Folder of runs.
        run: Id of the run.
        name: Name of the file.
    """
    if not is_run_id(run):
        return None
    try:
        folder = os.open(root / run, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    return open(handle, "rb")


def read_file(root: Path, run: str, name: str, limit: int = MAX_BYTES) -> bytes | None:
    """Return a file of a run; None if it cannot be opened, or holds more than `limit` bytes."""
    if (file := open_file(root, run, name)) is None:
        return None
    with file:
        content = file.read(limit + 1)
    return content if len(content) <= limit else None


def read_config(root: Path, run: str) -> dict[str, Any] | None:
    """Return the dotted keys of a run's config.toml; None if it is missing or damaged."""
    try:
        return dict(leaves(tomllib.loads((read_file(root, run, "config.toml", MAX_CONFIG) or b"\0").decode()), ""))
    except (ValueError, RecursionError):
        return None


def stamp(root: Path, run: str) -> tuple[int, ...]:
    """Return numbers that change with the files of a run."""
    numbers: list[int] = []
    for name in ("metrics.jsonl", "result.json", "config.toml"):
        try:
            about = os.lstat(root / run / name)
            numbers += [about.st_size, about.st_mtime_ns]
        except OSError:
            numbers += [-1, -1]
    return tuple(numbers)


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


MAX_STREAMS = 32
MAX_RUNS = 8  # of one stream
MAX_METRICS = 1_000  # metrics of one stream that are described
QUIET_SECONDS = 15.0  # seconds until a comment shows that the connection lives

_POSITION = re.compile(r"([^,:]+):([0-9]{1,15})")


class Streams:
    """ASGI endpoint `/api/events?run=ID`; open streams are counted and limited.

    Args:
        root: Folder of runs.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the browser leaves."""
        request = Request(scope, receive)
        runs = list(dict.fromkeys(request.query_params.getlist("run")))
        if refusal := self._refuse(runs):
            await refusal(scope, receive, send)
            return
        last = request.headers.get("last-event-id") or request.query_params.get("after", "")
        offsets = parse_positions(last)
        tails = [Tail(self._root, run, offsets.get(run, 0)) for run in runs]
        self.open += 1
        try:
            await StreamingResponse(messages(tails), media_type="text/event-stream")(scope, receive, send)
        finally:
            self.open -= 1

    def _refuse(self, runs: Sequence[str]) -> Response | None:
        if not 1 <= len(runs) <= MAX_RUNS:
            return PlainTextResponse(f"choose 1 to {MAX_RUNS} runs\n", 400)
        if not all(map(is_run_id, runs)):
            return PlainTextResponse("no such run\n", 404)
        if self.open >= MAX_STREAMS:
            return PlainTextResponse("too many open pages; close one\n", 503)
        return None


def parse_positions(text: str) -> dict[str, int]:
    """Return run -> offset from the id of an event, such as `a:120,b:77`; malformed parts are ignored."""
    found = (_POSITION.fullmatch(part) for part in text[:4_000].split(","))
    return {match[1]: int(match[2]) for match in found if match}


async def messages(tails: Sequence[Tail]) -> AsyncIterator[bytes]:
    """Yield server-sent events without end: batches of events, resets, and comments in quiet times."""
    described: set[str] = set()
    heard = time.monotonic()
    yield b"retry: 1000\n\n"
    while True:
        has_more = False
        for tail in tails:
            if not tail.is_behind():
                continue
            batch = await to_thread.run_sync(tail.read)
            has_more |= batch.has_more
            if batch.events or batch.is_reset:
                yield _message(tail, batch, tails, described)
                heard = time.monotonic()
        if time.monotonic() - heard >= QUIET_SECONDS:
            yield b": alive\n\n"
            heard = time.monotonic()
        await asyncio.sleep(0 if has_more else POLL_SECONDS)


def _message(tail: Tail, batch: Batch, tails: Sequence[Tail], described: set[str]) -> bytes:
    positions = ",".join(f"{one.run}:{one.offset}" for one in tails)
    head = json.dumps({"run": tail.run, "skipped": batch.skipped, "metrics": _describe(batch.events, described)})
    events = b",".join(event_to_line(event).rstrip() for event in batch.events)
    kind = b"reset" if batch.is_reset else b"events"
    data = head[:-1].encode() + b', "events": [' + events + b"]}"
    return b"id: " + positions.encode() + b"\nevent: " + kind + b"\ndata: " + data + b"\n\n"


def _describe(events: Sequence[Event], described: set[str]) -> Mapping[str, Any]:
    """Return metric -> description for metrics that this stream has not described yet."""
    keys = {key for event in events if isinstance(event, Round) for key in event.metrics}
    keys |= {key for event in events if isinstance(event, Start) for pair in event.simple.items() for key in pair}
    new = sorted(keys - described)[: max(MAX_METRICS - len(described), 0)]
    described.update(new)
    return {key: describe_metric(key) for key in new}


def describe_metric(key: str) -> dict[str, Any]:
    """Return the description of a metric for the page."""
    m = measure(key)
    fields = ("label", "short", "better", "digits", "meaning", "headline", "baseline")
    return {name: getattr(m, name) for name in fields}
