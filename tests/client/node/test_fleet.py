import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict

from client.node.failures import NotAdmittedError, RunOverError, Server, ServerAwayError
from client.node.flower import FETCH_SECONDS, Fleet
from common.errors import WireError
from deploy.superlink.superlink import free_port

ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def _content() -> RecordDict:
    return RecordDict({"arrays": ArrayRecord([ARRAY]), "config": ConfigRecord({"round": 1})})


def _join(fake: Any) -> Fleet:
    return Fleet(Server(fake.address), threading.Event())


def test_a_message_is_received_in_full_and_confirmed(fake: Any) -> None:
    posted = fake.post(_content())
    with _join(fake) as fleet:
        message = fleet.receive()
        assert message is not None
        assert message.content == posted.content
        assert message.metadata.message_id == posted.object_id
        assert fleet.receive() is None
        wait_until(lambda: fake.confirmed == [posted.object_id])


def test_no_message_is_none(fake: Any) -> None:
    with _join(fake) as fleet:
        assert fleet.receive() is None


def test_content_in_transit_is_waited_for_in_milliseconds(fake: Any) -> None:
    posted = fake.post(_content())
    fake.late = dict.fromkeys(fake.store, 2)
    with _join(fake) as fleet:
        start = time.monotonic()
        message = fleet.receive()
        waited = time.monotonic() - start
    assert message is not None
    assert message.content == posted.content
    assert waited < 0.8  # Flower's own first retry alone takes 0.8 s at least


def test_missing_content_means_that_the_run_has_ended(fake: Any) -> None:
    fake.post(_content())
    fake.store.clear()
    with _join(fake) as fleet, pytest.raises(RunOverError):
        fleet.receive()


def test_an_interrupted_message_is_fetched_when_the_server_returns(fake: Any) -> None:
    posted = fake.post(_content())
    with _join(fake) as fleet:
        fake.fail_pulls = 1
        with pytest.raises(ServerAwayError):
            fleet.receive()
        message = fleet.receive()
    assert message is not None
    assert message.content == posted.content


def test_malformed_content_is_a_wire_error_and_discarded(fake: Any) -> None:
    fake.post(_content())
    fake.store = dict.fromkeys(fake.store, b"no object at all")
    with _join(fake) as fleet:
        with pytest.raises(WireError, match="malformed"):
            fleet.receive()
        assert fleet.receive() is None


def test_a_reply_is_sent_in_full(fake: Any) -> None:
    fake.post(_content())
    with _join(fake) as fleet:
        message = fleet.receive()
        assert message is not None
        fleet.send(Message(_content(), reply_to=message), seconds=0.5)
    (reply,) = fake.replies
    assert reply.content == _content()
    assert reply.metadata.reply_to_message_id == message.metadata.message_id


def test_joining_and_leaving_are_announced(fake: Any) -> None:
    with _join(fake) as fleet:
        assert fleet.node_id == 7
    assert fake.calls == ["RegisterNode", "ActivateNode", "DeactivateNode", "UnregisterNode"]


def test_the_overrides_of_the_run_are_fetched_but_no_code(fake: Any) -> None:
    with _join(fake) as fleet:
        assert fleet.fetch_run_config(99) == {"rounds": 3}
    assert "GetFab" not in fake.calls


def test_a_node_that_the_server_forgot_is_not_admitted(fake: Any) -> None:
    with _join(fake) as fleet:
        fake.is_registered = False
        with pytest.raises(NotAdmittedError):
            fleet.receive()


def test_a_reply_to_a_finished_run_is_a_run_over_error(fake: Any) -> None:
    fake.post(_content())
    with _join(fake) as fleet:
        message = fleet.receive()
        assert message is not None
        fake.running = False
        with pytest.raises(RunOverError):
            fleet.send(Message(_content(), reply_to=message))


def test_an_absent_server_raises_server_away_error() -> None:
    with pytest.raises(ServerAwayError, match="no server at"):
        Fleet(Server(f"127.0.0.1:{free_port()}"), threading.Event()).__enter__()


def test_leaving_does_not_wait_for_a_server_that_hangs(fake: Any) -> None:
    fake.hang, stop = threading.Event(), threading.Event()
    with Fleet(Server(fake.address), stop) as fleet:
        threading.Timer(0.1, stop.set).start()
        start = time.monotonic()
        with pytest.raises(ServerAwayError, match="before this client stopped"):
            fleet.receive()
        assert 0.5 < time.monotonic() - start < 1.5


def test_leaving_waits_until_the_server_can_fetch_the_last_reply(fake: Any) -> None:
    """Flower answers for a node that has left in its own name, and drops the reply."""
    fake.post(_content())
    with _join(fake) as fleet:
        message = fleet.receive()
        assert message is not None
        fleet.send(Message(_content(), reply_to=message))
        sent = time.monotonic()
    assert FETCH_SECONDS <= time.monotonic() - sent < FETCH_SECONDS + 1
    assert fake.calls[-2:] == ["DeactivateNode", "UnregisterNode"]


def test_a_client_without_a_recent_reply_leaves_at_once(fake: Any) -> None:
    with _join(fake):
        start = time.monotonic()
    assert time.monotonic() - start < FETCH_SECONDS / 2
