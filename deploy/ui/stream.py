"""Event stream of the chosen runs, as server-sent events that resume without loss or repetition."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from deploy.progress import POLL_SECONDS
from deploy.report.metric_table import measure
from deploy.ui.run_files import is_run_id
from deploy.ui.tail import Batch, Tail
from server.events import Event, Round, Start, event_to_line

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
