"""Data of the live page, read from the files of runs: their list, details and events."""

import asyncio
import fcntl
import json
import os
import re
import stat
import time
import tomllib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from common.config.parse import parse
from common.errors import ConfigError, DataError, FedloomError
from common.options import leaves
from deploy.pages import view
from deploy.pages.statement import counted, describe, statement_of, unit_of
from deploy.pages.terminal import POLL_SECONDS
from deploy.pages.view import RunRecord, first_line, format_value, headlines, measure
from server.record.events import Event, Finish, RoundEvent, Start, event_from_line, event_to_line
from server.record.folder import EVENTS_FILE, LOCK_FILE, RunDirectory
from server.record.privacy_statement import statement, with_parent
from server.record.result import Parent, Result, result_from_json, result_to_json

MAX_BYTES = 16_000_000
"""Size above which a whole file is not read."""

MAX_CONFIG = 1_000_000  # bytes of config.toml
MAX_LINE = 1_000_000  # bytes of one event


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
    """Open a file of a run; None if it is missing, not a regular file, or behind a link."""
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
    for name in (EVENTS_FILE, "result.json", "config.toml"):
        try:
            about = os.lstat(root / run / name)
            numbers += [about.st_size, about.st_mtime_ns]
        except OSError:
            numbers += [-1, -1]
    return tuple(numbers)


MAX_LOOK_BACK = 100  # events from the end in which metrics are searched
RECENT_SECONDS = 30.0  # seconds after its last event in which a run without lock file counts as running


Json = dict[str, Any]


class RunList:
    """Summaries of all runs in the folder `root`; those of unchanged files are reused."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._cache: dict[str, tuple[tuple[int, ...], Json | None]] = {}

    def newest(self, limit: int) -> list[Json]:
        """Return the summaries of the newest runs, newest first."""
        names = set(run_ids(self._root))
        self._cache = {name: entry for name, entry in self._cache.items() if name in names}
        created = sorted(names, key=lambda name: (_created(self._root, name), name), reverse=True)
        return list(islice(filter(None, map(self._summary, created)), limit))

    def _summary(self, name: str) -> Json | None:
        stamped = stamp(self._root, name)
        before, summary = self._cache.get(name, ((), None))
        if before != stamped or (summary and summary["status"] in ("running", "stopped")):
            summary = summarize(self._root, name)
            self._cache[name] = stamped, summary
        return summary


def _created(root: Path, name: str) -> float:
    """Return the time at which the run was configured; a resumed run keeps its place."""
    try:
        return os.lstat(root / name / "catalogue.json").st_mtime
    except OSError:
        return 0.0


def summarize(root: Path, run: str) -> Json | None:
    """Return the row of one run in the list, from the end of its events; None if its folder holds no run.

    `status` is `running`, `completed`, `failed` or `stopped`, `value` that of the headline metric as text. `seconds` are from
    the first start to the last event. Runs are comparable if they have the same `group`, unless it is empty.
    """
    if (config := read_config(root, run)) is None:
        return None
    first, last = _ends(root, run)
    status, reason = _status(root, run, last)
    rounds = tuple(event for event in reversed(last) if isinstance(event, RoundEvent))
    record = RunRecord(RunDirectory(root, run), config, rounds, "unfinished", reason, first, None)
    shown = headlines(record.final, baselines=False, first=view.objective_of(record.task))
    headline = next((m for m in shown if m.key != "loss"), next(iter(shown), None))
    group = (first.task, first.fingerprint, first.split, str(first.seed)) if first and first.fingerprint else ()
    return {
        "id": run,
        "task": record.task,
        "method": str(config.get("method", "?")),
        "model": str(config.get("model", "")),
        "seed": str(config.get("seed", "")),
        "status": status,
        "reason": first_line(reason),
        "rounds": config["rounds"] if isinstance(config.get("rounds"), int) else 0,
        "rounds_done": record.rounds_done,
        "metric": headline.short if headline else "",
        "value": format_value(headline, record.final[headline.key]) if headline else "",
        "epsilon": record.epsilon,
        "started": record.started,
        "seconds": max(last[0].time - first.time, 0.0) if last and first else 0.0,
        "group": "|".join(group),
    }


def _ends(root: Path, run: str) -> tuple[Start | None, list[Event]]:
    """Return the first event if it is a start, and the events of the last megabyte, newest first."""
    if (file := open_file(root, run, EVENTS_FILE)) is None:
        return None, []
    with file:
        first = next(_events([file.readline(MAX_LINE)]), None)
        file.seek(max(os.fstat(file.fileno()).st_size - MAX_LINE, 0))
        lines = file.read(MAX_LINE).splitlines()
    last: list[Event] = []
    for event in _events(reversed(lines)):
        last.append(event)
        if len(last) >= MAX_LOOK_BACK or (isinstance(event, RoundEvent) and event.metrics):
            break
    return first if isinstance(first, Start) else None, last


def _events(lines: Iterable[bytes]) -> Iterator[Event]:
    for line in lines:
        try:
            yield event_from_line(line)
        except DataError:
            continue


def _status(root: Path, run: str, last: Sequence[Event]) -> tuple[str, str]:
    """Return the status and its reason from the newest events and the run's lock; nothing is written."""
    if last and isinstance(last[0], Finish):
        return last[0].status, last[0].reason
    is_running = bool(last) and time.time() - last[0].time < RECENT_SECONDS
    if (file := open_file(root, run, LOCK_FILE)) is not None:
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                is_running = False
            except OSError:
                is_running = True
    if is_running:
        return "running", ""
    return "stopped", "its process ended; resume it with --resume" if last else "no round yet"


MAX_CLIENTS = 1_000  # clients of one answer
MAX_EXAMPLES = 1_000_000  # bytes of examples.json


def read_detail(root: Path, run: str) -> Json | None:
    """Return one run as a JSON value; None if there is no such run."""
    if (config := read_config(root, run)) is None:
        return None
    content = read_file(root, run, "result.json")
    try:
        result = result_from_json(content) if content else None
    except DataError:
        result = None
    try:
        origin = json.loads(read_file(root, run, "origin.json") or b"null")
    except (ValueError, RecursionError):
        origin = None
    shown: Json | None = None
    if result:
        shown = json.loads(result_to_json(result))
        shown |= {"clients": dict(islice(shown["clients"].items(), MAX_CLIENTS)), "clients_total": len(result.clients)}
    return {
        "id": run,
        "config": config,
        "result": shown,
        "privacy": _privacy_as_json(config, result, _read_parent(root, run)),
        "origin": origin if isinstance(origin, dict) else None,
        "objective": view.objective_of(str(config.get("task", ""))),
        "has_examples": read_file(root, run, "examples.json", MAX_EXAMPLES) is not None,
    }


def _read_parent(root: Path, run: str) -> Parent | None:
    """Return the run from which this one started; None if there is none."""
    try:
        return Parent(**json.loads(read_file(root, run, "parent.json") or b"null"))
    except (TypeError, ValueError, RecursionError):
        return None


def _privacy_as_json(config: Mapping[str, Any], result: Result | None, parent: Parent | None) -> Json | None:
    """Return the statement with its sentences, or the expected one of a run before its end.

    `exact` is True if updates are sent without noise. None if a package or an option of the run is missing here.
    """
    if result:
        privacy, (claim, terms) = result.privacy, statement_of(result)
    else:
        try:
            privacy = statement(parse({key: value for key, value in config.items() if key != "resume"}), {}, 0)
            privacy = with_parent(privacy, parent) if parent else privacy
        except FedloomError:
            return None
        claim, terms = describe(privacy)
    return {
        **asdict(privacy),
        "claim": claim,
        "terms": terms,
        "exact": privacy.epsilon is None,
        "cost": unit_of(privacy.account) if privacy.account else "",
        "counted": counted(privacy.account) if privacy.account else "",
    }


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
    """Reader of one run's events from an offset on, which is the number of bytes before the next event."""

    root: Path
    run: str
    offset: int = 0
    skipped: int = 0
    _is_inside: bool = field(default=False, init=False)
    """True if the offset is inside a line that is too long."""

    def is_behind(self) -> bool:
        """Return True if the file's size is not the offset."""
        try:
            return os.lstat(self.root / self.run / EVENTS_FILE).st_size != self.offset
        except OSError:
            return self.offset != 0

    def read(self) -> Batch:
        """Return the next events."""
        file = open_file(self.root, self.run, EVENTS_FILE)
        size = os.fstat(file.fileno()).st_size if file else 0
        is_reset = size < self.offset
        if is_reset:
            self.offset, self.skipped, self._is_inside = 0, 0, False
        if file is None:
            return Batch([], is_reset, False, self.skipped)
        events: list[Event] = []
        begin, event_bytes = self.offset, 0
        with file:
            file.seek(self.offset)
            while len(events) < MAX_EVENTS and event_bytes < MAX_BATCH and self.offset - begin < MAX_READ:
                line = file.readline(MAX_LINE + 1)
                was_inside, is_whole, is_long = self._is_inside, line.endswith(b"\n"), len(line) > MAX_LINE
                if not line or not (is_whole or is_long or was_inside):  # the end of the file, or a torn line
                    return Batch(events, is_reset, False, self.skipped)
                self.offset += len(line)
                self._is_inside = not is_whole
                if was_inside or is_long:
                    self.skipped += not was_inside
                    continue
                try:
                    events.append(event_from_line(line))
                    event_bytes += len(line)
                except DataError:
                    self.skipped += bool(line.strip())
        return Batch(events, is_reset, self.offset < size, self.skipped)


MAX_STREAMS = 32
MAX_RUNS = 8  # of one stream
MAX_METRICS = 1_000  # metrics of one stream that are described
QUIET_SECONDS = 15.0  # seconds until a comment shows that the connection lives

_POSITION = re.compile(r"([^,:]+):([0-9]{1,15})")


class Streams:
    """ASGI endpoint `/api/events?run=ID` over a folder of runs; open streams are counted and limited."""

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
    keys = {key for event in events if isinstance(event, RoundEvent) for key in event.metrics}
    keys |= {key for event in events if isinstance(event, Start) for pair in event.simple.items() for key in pair}
    new = sorted(keys - described)[: max(MAX_METRICS - len(described), 0)]
    described.update(new)
    fields = ("label", "short", "better", "digits", "meaning", "headline", "baseline")
    found = {key: {name: getattr(measure(key), name) for name in fields} for key in new}
    for key in {key for key in new if f"{key}_shown" in keys}:
        found[key]["headline"] = False  # people see the list of the other
    return found
