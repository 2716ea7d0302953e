import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict

from client.node.failures import NotAdmittedError, RunOverError, Server, ServerAwayError
from client.node.fleet import FETCHED, Fleet
from common.errors import WireError
from deploy.processes import free_port

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


def test_a_message_arrives_whole_and_is_confirmed(fake: Any) -> None:
    posted = fake.post(_content())
    with _join(fake) as fleet:
        message = fleet.receive()
        assert message is not None
        assert message.content == posted.content
        assert message.metadata.message_id == posted.object_id
        assert fleet.receive() is None
        wait_until(lambda: fake.confirmed == [posted.object_id])


def test_nothing_waits_is_none(fake: Any) -> None:
    with _join(fake) as fleet:
        assert fleet.receive() is None


def test_content_still_on_its_way_is_waited_for_in_milliseconds(fake: Any) -> None:
    posted = fake.post(_content())
    fake.late = dict.fromkeys(fake.store, 2)
    with _join(fake) as fleet:
        start = time.monotonic()
        message = fleet.receive()
        waited = time.monotonic() - start
    assert message is not None
    assert message.content == posted.content
    assert waited < 0.8  # Flower's own first retry alone takes 0.8 s at least


def test_content_that_is_gone_is_a_run_that_is_over(fake: Any) -> None:
    fake.post(_content())
    fake.store.clear()
    with _join(fake) as fleet, pytest.raises(RunOverError):
        fleet.receive()


def test_a_message_cut_off_on_its_way_is_fetched_when_the_server_is_back(fake: Any) -> None:
    posted = fake.post(_content())
    with _join(fake) as fleet:
        fake.fail_pulls = 1
        with pytest.raises(ServerAwayError):
            fleet.receive()
        message = fleet.receive()
    assert message is not None
    assert message.content == posted.content


def test_malformed_content_is_a_wire_error_and_forgotten(fake: Any) -> None:
    fake.post(_content())
    fake.store = dict.fromkeys(fake.store, b"no object at all")
    with _join(fake) as fleet:
        with pytest.raises(WireError, match="malformed"):
            fleet.receive()
        assert fleet.receive() is None


def test_a_reply_arrives_whole(fake: Any) -> None:
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


def test_the_runs_overrides_are_told_but_no_code_is_fetched(fake: Any) -> None:
    with _join(fake) as fleet:
        assert fleet.run_config(99) == {"rounds": 3}
    assert "GetFab" not in fake.calls


def test_a_forgotten_node_is_told_apart(fake: Any) -> None:
    with _join(fake) as fleet:
        fake.known = False
        with pytest.raises(NotAdmittedError):
            fleet.receive()


def test_a_reply_to_a_finished_run_is_told_apart(fake: Any) -> None:
    fake.post(_content())
    with _join(fake) as fleet:
        message = fleet.receive()
        assert message is not None
        fake.running = False
        with pytest.raises(RunOverError):
            fleet.send(Message(_content(), reply_to=message))


def test_an_absent_server_is_away() -> None:
    with pytest.raises(ServerAwayError, match="is it running"):
        Fleet(Server(f"127.0.0.1:{free_port()}"), threading.Event()).__enter__()


def test_leaving_does_not_wait_for_a_server_that_hangs(fake: Any) -> None:
    fake.hang, stop = threading.Event(), threading.Event()
    with Fleet(Server(fake.address), stop) as fleet:
        threading.Timer(0.1, stop.set).start()
        start = time.monotonic()
        with pytest.raises(ServerAwayError, match="in time to leave"):
            fleet.receive()
        assert 0.5 < time.monotonic() - start < 1.5


def test_leaving_gives_the_server_time_to_fetch_the_last_reply(fake: Any) -> None:
    """Flower answers for a node that has left in its own name, and drops the reply."""
    fake.post(_content())
    with _join(fake) as fleet:
        message = fleet.receive()
        assert message is not None
        fleet.send(Message(_content(), reply_to=message))
        sent = time.monotonic()
    assert FETCHED <= time.monotonic() - sent < FETCHED + 1
    assert fake.calls[-2:] == ["DeactivateNode", "UnregisterNode"]


def test_who_has_sent_nothing_lately_leaves_at_once(fake: Any) -> None:
    with _join(fake):
        start = time.monotonic()
    assert time.monotonic() - start < FETCHED / 2
