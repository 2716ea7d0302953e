"""Clients of the live page without a network, and run folders with chosen events."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.pages.live import make_app
from server.record.events import ClientRound, Event, RoundEvent, Start
from server.record.folder import RunDirectory

TOKEN = "t" * 43
HOST = "127.0.0.1:8765"


@dataclass(frozen=True)
class Answer:
    """Answer to a request."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask(
    root: Path,
    path: str,
    query: str = "",
    *,
    method: str = "GET",
    host: str | None = HOST,
    cookie: str | None = f"fedloom-8765={TOKEN}",
) -> Answer:
    """Send one request to the application over `root`; the path is as in the request line, without decoding."""
    headers = [(b"host", host.encode())] if host is not None else []
    headers += [(b"cookie", cookie.encode("latin-1"))] if cookie else []
    return asyncio.run(exchange(make_app(root, TOKEN), path, query, method, headers))


async def exchange(
    app: Any, path: str, query: str = "", method: str = "GET", headers: Sequence[tuple[bytes, bytes]] = ()
) -> Answer:
    """Send one request to an application and return its whole answer."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": list(headers),
        "server": ("127.0.0.1", 8765),
        "client": ("127.0.0.1", 5),
    }
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    await app(scope, receive, send)
    [start, *rest] = sent
    body = b"".join(message.get("body", b"") for message in rest)
    return Answer(start["status"], {key.decode(): value.decode() for key, value in start["headers"]}, body)


def write_run(root: Path, run_id: str, events: Sequence[Event] = (), **options: Any) -> RunDirectory:
    """Write a run folder with these events; `options` are keys of its configuration."""
    folder = RunDirectory(root, run_id)
    folder.create({"task": "rules", "method": "fedavg", "model": "default", "seed": 0, "rounds": 9, **options}, {})
    for event in events:
        folder.append(event)
    return folder


def a_start(run: str = "r1", rounds: int = 9, **fields: Any) -> Start:
    """Return the start of a rules run."""
    about = {"method": "fedavg", "task": "rules", "model": "default", "seed": 0, "time": 1.7e9}
    return Start(run=run, rounds=rounds, **{**about, **fields})


def a_round(number: int, rounds: int = 9, **fields: Any) -> RoundEvent:
    """Return a round in which two clients took part."""
    client = ClientRound(state="online", seconds=0.5, bytes_up=10, bytes_down=20, last_seen=1.7e9 + number)
    values = {
        "time": 1.7e9 + number,
        "loss": 1 / number,
        "metrics": {"auc": 1 - 0.5 / number, "loss": 1 / number},
        "seconds": 0.5,
        "answered": 2,
        "asked": 2,
        "bytes_down": 40,
        "bytes_up": 20,
        "clients": {"client-0": client, "client-1": client},
    }
    return RoundEvent(round=number, rounds=rounds, **{**values, **fields})
