"""Event stream of the live page."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from deploy.pages import live_data
from deploy.pages.live import make_app
from deploy.pages.live_data import MAX_STREAMS, Streams, Tail, messages, parse_positions
from tests.support.ui import HOST, TOKEN, a_round, a_start, ask, exchange, write_run

HEADERS = [(b"host", HOST.encode()), (b"cookie", f"fedloom-8765={TOKEN}".encode())]


def fields(message: bytes) -> dict[str, str]:
    """Return the fields of a server-sent event."""
    return dict(text.split(": ", 1) for text in message.decode().strip().split("\n"))


async def first(count: int, tails: list[Tail]) -> list[dict[str, str]]:
    """Return the first events after the opening message."""
    source = messages(tails)
    assert (await anext(source)).startswith(b"retry:")
    found = [fields(await asyncio.wait_for(anext(source), 10)) for _ in range(count)]
    await source.aclose()
    return found


def test_events_have_their_run_and_the_positions_of_all_runs(tmp_path: Path) -> None:
    write_run(tmp_path, "a", [a_start("a"), a_round(1)])
    write_run(tmp_path, "b", [a_start("b")])
    found = asyncio.run(first(2, [Tail(tmp_path, "a"), Tail(tmp_path, "b")]))
    batches = [json.loads(one["data"]) for one in found]
    assert [batch["run"] for batch in batches] == ["a", "b"]
    assert [event["event"] for event in batches[0]["events"]] == ["start", "round"]
    sizes = {run: (tmp_path / run / "metrics.jsonl").stat().st_size for run in "ab"}
    assert parse_positions(found[1]["id"]) == sizes
    assert batches[0]["metrics"]["auc"]["better"] == "higher"
    assert "auc" not in batches[1]["metrics"]


def test_a_stream_resumes_behind_its_last_event(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "a", [a_start("a"), a_round(1)])
    [one] = asyncio.run(first(1, [Tail(tmp_path, "a")]))
    folder.append(a_round(2))
    [two] = asyncio.run(first(1, [Tail(tmp_path, "a", parse_positions(one["id"])["a"])]))
    assert [event["round"] for event in json.loads(two["data"])["events"]] == [2]


def test_a_shorter_file_is_announced(tmp_path: Path) -> None:
    write_run(tmp_path, "a", [a_start("a")])
    [one] = asyncio.run(first(1, [Tail(tmp_path, "a", 10_000)]))
    assert one["event"] == "reset"
    assert len(json.loads(one["data"])["events"]) == 1


def test_a_quiet_stream_shows_that_it_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_data, "QUIET_SECONDS", 0.2)

    async def comment() -> bytes:
        source = messages([Tail(tmp_path, "a")])
        await anext(source)
        return await asyncio.wait_for(anext(source), 10)

    assert asyncio.run(comment()).startswith(b":")


def test_hostile_names_stay_inside_one_line_of_data(tmp_path: Path) -> None:
    name = "x\r\n\nevent: reset\ndata: {}\u2028<img src=x>"
    write_run(tmp_path, "a", [a_round(1, clients={}, refused={name: "a\nb"}, missing=[name])])
    [one] = asyncio.run(first(1, [Tail(tmp_path, "a")]))
    [event] = json.loads(one["data"])["events"]
    assert event["refused"] == {name: "a\nb"}


@pytest.mark.parametrize(
    ("text", "positions"),
    [
        ("", {}),
        ("a:5", {"a": 5}),
        ("a.b-c_d:5,e:6", {"a.b-c_d": 5, "e": 6}),
        ("a:-1,b:x,c,:4,d:1:2,e:" + "9" * 30, {}),
        ("a:1," * 100_000, {"a": 1}),
    ],
)
def test_positions_are_parsed_without_trust(text: str, positions: dict[str, int]) -> None:
    assert parse_positions(text) == positions


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 400), ("run=..", 404), ("run=a/b", 404), ("run=%00", 404), ("&".join(f"run=r{k}" for k in range(9)), 400)],
)
def test_wrong_choices_are_refused(tmp_path: Path, query: str, status: int) -> None:
    assert ask(tmp_path, "/api/events", query).status == status


def test_the_33rd_stream_is_refused_and_closed_ones_count_no_more(tmp_path: Path) -> None:
    async def act() -> tuple[int, int]:
        streams = Streams(tmp_path)
        open_ones = [asyncio.create_task(listen(streams)) for _ in range(MAX_STREAMS)]
        while streams.open < MAX_STREAMS:
            await asyncio.sleep(0.01)
        refused = await exchange(streams, "/api/events", "run=a")
        open_ones[0].cancel()
        await asyncio.sleep(0.1)
        left = streams.open
        for task in open_ones:
            task.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)
        assert streams.open == 0
        return refused.status, left

    assert asyncio.run(act()) == (503, MAX_STREAMS - 1)


async def listen(streams: Any) -> None:
    """Keep a stream open, as a browser does."""
    never = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await never.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        await asyncio.sleep(0)

    scope = {"type": "http", "method": "GET", "path": "/api/events", "query_string": b"run=a", "headers": HEADERS}
    await streams(scope, receive, send)


def test_a_stream_ends_when_the_browser_leaves(tmp_path: Path) -> None:
    write_run(tmp_path, "a", [a_start("a")])

    async def act() -> int:
        sent = 0

        async def receive() -> dict[str, Any]:
            while not sent:
                await asyncio.sleep(0.01)
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            nonlocal sent
            sent += message["type"] == "http.response.body"

        scope = {"type": "http", "method": "GET", "path": "/api/events", "raw_path": b"", "query_string": b"run=a"}
        await asyncio.wait_for(make_app(tmp_path, TOKEN)({**scope, "headers": HEADERS}, receive, send), 10)
        return sent

    assert asyncio.run(act()) > 0
