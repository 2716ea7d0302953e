"""Rhythm of heartbeats, and the place that a restarted client takes over."""

import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from flwr.app import ArrayRecord, Message, RecordDict

from client.node import flower as heart
from client.node.failures import LastNode, NotAdmittedError, Server
from client.node.flower import Fleet, Heart
from tests.client.node.conftest import NODE_ID


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_request_starts_frequent_heartbeats_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heart, "BUSY_SECONDS", 0.01)
    beats = list[float]()

    def beat() -> None:
        beats.append(time.monotonic())
        if len(beats) == 2:
            raise grpc.RpcError("one fails")

    own = Heart(beat)
    own.start()
    time.sleep(0.1)
    assert beats == [], "none is due while the client is idle"
    own.busy.set()
    wait_until(lambda: len(beats) >= 3)
    own.busy.clear()
    time.sleep(0.05)
    count = len(beats)
    time.sleep(0.1)
    assert len(beats) == count
    own.stop(1.0)
    assert len(beats) == count


def test_a_client_is_busy_from_a_request_to_its_reply(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heart, "BUSY_SECONDS", 0.01)
    fake.post(RecordDict({"arrays": ArrayRecord([])}))
    with Fleet(Server(fake.address), threading.Event()) as fleet:
        message = fleet.receive()
        assert message is not None
        wait_until(lambda: fake.calls.count("SendNodeHeartbeat") >= 3)
        fleet.send(Message(message.content, reply_to=message))
        time.sleep(0.05)
        count = fake.calls.count("SendNodeHeartbeat")
        time.sleep(0.1)
        assert fake.calls.count("SendNodeHeartbeat") == count


def test_a_restarted_client_takes_over_the_place_of_its_last_connection(fake: Any, tmp_path: Path) -> None:
    last_node = LastNode(tmp_path / "home-7.node")
    server = Server(fake.address, last_node=last_node)
    with Fleet(server, threading.Event()) as fleet:
        assert fleet.node_id == NODE_ID
    assert last_node.read() == NODE_ID
    assert stat.S_IMODE((tmp_path / "home-7.node").stat().st_mode) == 0o600
    fake.calls.clear()
    fake.held = True
    with Fleet(server, threading.Event()) as fleet:
        assert fleet.node_id == NODE_ID


@pytest.mark.parametrize("content", [None, b"", b"seven", b"\xff"])
def test_without_a_known_place_the_client_waits(content: bytes | None, fake: Any, tmp_path: Path) -> None:
    path = tmp_path / "home-7.node"
    if content is not None:
        path.write_bytes(content)
    fake.held = True
    with pytest.raises(NotAdmittedError):
        Fleet(Server(fake.address, last_node=LastNode(path)), threading.Event()).__enter__()
    assert "DeactivateNode" not in fake.calls


def test_a_key_that_does_not_hold_the_place_is_refused_as_before(fake: Any, tmp_path: Path) -> None:
    (tmp_path / "n").write_text("99")
    fake.held = True
    fake.is_registered = False
    with pytest.raises(NotAdmittedError, match="does not admit this node's key"):
        Fleet(Server(fake.address, last_node=LastNode(tmp_path / "n")), threading.Event()).__enter__()
