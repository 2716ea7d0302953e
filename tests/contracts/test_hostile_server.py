"""Attacks of a server on a client in this process: floods, and requests that are too large or late."""

import itertools
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import grpc
import pytest
from flwr.app import ConfigRecord, Context, Message, RecordDict

from client.node import resident
from client.node.observer import Observer
from common.door.door_pb2 import ClientFrame, Go, Reply, ServerFrame, Task, Welcome
from common.door.frames import MOST_VARIABLE, SERVE, DoorLimits, first_bytes, further_chunks
from server.exchange.flower import encode_record
from tests.support.residents import RunningResident, app_of, resident_mb, wait_until

SECONDS = 5.0


def _echo(message: Message, context: Context) -> Message:
    return Message(RecordDict(), reply_to=message)


class Hostile:
    """Server without a door, which welcomes a client and sends what a test says."""

    def __init__(self, frames: Callable[[], Iterator[ServerFrame]]) -> None:
        self._server, self.hellos, self.replies = grpc.server(ThreadPoolExecutor(4)), 0, list[Reply]()

        def serve(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
            assert ClientFrame.FromString(next(requests)).WhichOneof("frame") == "hello"
            self.hellos += 1
            threading.Thread(target=self._hear, args=(requests,), daemon=True).start()
            yield ServerFrame(welcome=Welcome(node=7)).SerializeToString()
            for frame in frames():
                yield frame.SerializeToString()
            while context.is_active():
                time.sleep(0.05)

        service, method = SERVE.strip("/").split("/")
        handlers = {method: grpc.stream_stream_rpc_method_handler(serve)}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        self.port = self._server.add_insecure_port("localhost:0")

    def _hear(self, requests: Iterator[bytes]) -> None:
        with suppress(grpc.RpcError):
            for frame in map(ClientFrame.FromString, requests):
                self.replies += [frame.reply] if frame.HasField("reply") else []

    def __enter__(self) -> "Hostile":
        self._server.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.stop(0)


def tasks(size: int) -> Iterator[ServerFrame]:
    """Yield endless tasks of some bytes and a few more."""
    content = encode_record(RecordDict({"a": ConfigRecord({"b": bytes(size)})}))
    for number in itertools.count():
        yield ServerFrame(task=Task(id=str(number), kind="train", size=len(content), data=first_bytes(content)))
        yield from (ServerFrame(chunk=chunk) for chunk in further_chunks(content))


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        (lambda: tasks(4 * 10**6), r"requests of [\d,]+ bytes wait, and one more came"),
        (lambda: tasks(10), r"64 requests of [\d,]+ bytes wait, and one more came"),
        (lambda: (ServerFrame(go=Go(task=str(n))) for n in itertools.count()), "more than 400 frames at once"),
    ],
)
def test_a_server_that_floods_a_client_costs_it_little_memory_and_a_pause(
    frames: Callable[[], Iterator[ServerFrame]], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident, "EXCESS_SECONDS", 0.2)
    monkeypatch.setenv(MOST_VARIABLE, "8")
    started = threading.Event()

    def train(message: Message, context: Context) -> Message:
        started.wait(SECONDS)
        return Message(RecordDict(), reply_to=message)

    with Hostile(frames) as server:
        before = resident_mb()
        client = RunningResident(app_of(train), f"localhost:{server.port}")
        wait_until(lambda: server.hellos >= 3, 30.0)
        assert resident_mb() - before < 150  # with the server's
        started.set()
        client.leave()
    assert client.error is None
    assert any(re.search(reason, event) for event in client.events), client.events


def test_a_request_beyond_the_run_s_own_is_dropped_and_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Observer, "largest_request", lambda self, run: 10**6)
    with Hostile(lambda: itertools.islice(tasks(2 * 10**6), 8)) as server:
        client = RunningResident(app_of(_echo), f"localhost:{server.port}")
        wait_until(lambda: len(server.replies) == 1, 10.0)
        client.leave()
    assert server.replies[0].reason.endswith("bytes, this client takes 1,000,000 (FEDLOOM_MOST_UPLOAD)")
    assert client.error is None


def test_a_request_that_does_not_arrive_in_time_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DoorLimits, "body_seconds", lambda self, size: 0.1)
    with Hostile(lambda: itertools.islice(tasks(10**6), 2)) as server:
        client = RunningResident(app_of(_echo), f"localhost:{server.port}")
        wait_until(lambda: any("did not arrive in time" in event for event in client.events), 10.0)
        client.leave()
