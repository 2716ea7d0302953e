"""Contents of replies: the bytes are Flower's."""

import time
from itertools import islice
from random import Random
from typing import Any

import pytest
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.common.serde import recorddict_to_proto

from client.node.failures import NotAdmittedError, ServerAwayError
from client.node.flower import serialize
from client.node.resident import retry_pauses
from client.node.stream import NodeStream
from common.errors import DataError, RefusedError
from deploy.superlink.superlink import free_port
from tests.support.residents import RunningResident, app_of, echo, wait_until


def test_messages_are_answered_in_sequence_and_state_is_stored(fake: Any) -> None:
    for _ in range(3):
        fake.post(RecordDict())
        time.sleep(0.001)
    client = RunningResident(app_of(echo), fake.address)
    wait_until(lambda: len(fake.replies) == 3)
    assert [reply["answer"]["seen"] for reply in fake.replies] == [1, 2, 3]
    assert client.leave() < 2
    assert client.error is None
    wait_until(lambda: fake.events == [("admit", 7), ("leave", 7)])


def test_the_context_names_node_run_and_configuration(fake: Any) -> None:
    seen: list[Context] = []

    def look(message: Message, context: Context) -> Message:
        seen.append(context)
        return Message(RecordDict(), reply_to=message)

    fake.post(RecordDict())
    client = RunningResident(app_of(look), fake.address, node_config={"home": "a"})
    wait_until(lambda: len(fake.replies) == 1)
    client.leave()
    (context,) = seen
    assert (context.node_id, context.run_id) == (7, 99)
    assert context.node_config == {"home": "a"}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RefusedError("noise is required here"), "noise is required here"),
        (ValueError("user 17 owns a safe"), "unexpected ValueError; see the client's log"),
        (DataError("user 17 owns a safe"), "this client's data cannot be read; see the client's log"),
    ],
)
def test_a_failure_is_an_answer_without_private_data(fake: Any, error: Exception, reason: str) -> None:
    def fail(message: Message, context: Context) -> Message:
        raise error

    fake.post(RecordDict())
    client = RunningResident(app_of(fail), fake.address)
    wait_until(lambda: len(fake.answers) == 1)
    client.leave()
    assert fake.answers[0].reason == reason


def test_a_reply_to_a_finished_run_is_dropped_and_the_client_continues(fake: Any) -> None:
    ends = iter([True])

    def train(message: Message, context: Context) -> Message:
        if next(ends, False):
            fake.is_running = False
            time.sleep(0.5)  # the door looks five times a second
        return echo(message, context)

    fake.post(RecordDict())
    client = RunningResident(app_of(train), fake.address)
    wait_until(lambda: any("unanswered: the run has ended" in event for event in client.events))
    fake.is_running = True
    fake.post(RecordDict())
    wait_until(lambda: len(fake.replies) == 1)
    client.leave()
    assert fake.replies[0]["answer"]["seen"] == 2


def test_a_node_whose_key_was_revoked_is_cut_off_at_once_and_waits_for_its_return(fake: Any) -> None:
    client = RunningResident(app_of(echo), fake.address)
    wait_until(lambda: ("admit", 7) in fake.events)
    fake.revoked, fake.registered = {7}, set()
    wait_until(lambda: any("does not admit this node's key" in event for event in client.events), 1.0)
    fake.revoked, fake.registered = set(), None
    wait_until(lambda: fake.events.count(("admit", 7)) == 2)
    fake.post(RecordDict())
    wait_until(lambda: len(fake.replies) == 1)
    client.leave()


def test_a_reply_to_an_absent_server_is_sent_again_without_retraining(
    fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[int] = []

    def train(message: Message, context: Context) -> Message:
        trained.append(1)
        return Message(RecordDict(), reply_to=message)

    send, failures = NodeStream.send, iter([True, True, False])

    def unreliable(stream: NodeStream, reply: Message) -> None:
        if next(failures, False):
            raise ServerAwayError("gone")
        send(stream, reply)

    monkeypatch.setattr(NodeStream, "send", unreliable)
    fake.post(RecordDict())
    client = RunningResident(app_of(train), fake.address)
    wait_until(lambda: len(fake.replies) == 1)
    client.leave()
    assert len(trained) == 1


def test_leaving_is_fast_while_the_server_is_absent() -> None:
    client = RunningResident(app_of(echo), f"127.0.0.1:{free_port()}")
    wait_until(lambda: any("no server at" in event for event in client.events))
    assert client.leave() < 1
    assert client.error is None


def test_a_key_that_is_never_admitted_ends_the_client(fake: Any) -> None:
    fake.registered = set()
    client = RunningResident(app_of(echo), fake.address, patience=0.2)
    client.thread.join(5)
    assert isinstance(client.error, NotAdmittedError)


def test_a_content_has_the_bytes_that_flower_gives_it() -> None:
    mixed = ConfigRecord(
        {"n": 3, "b": True, "x": 0.5, "many": [b"a", b"b"], "arrays": b"\0" * 5000, "none": b"", "z": "e"}
    )
    content = RecordDict(
        {"reply": mixed, "plain": ConfigRecord({"n": 1}), "m": MetricRecord({"a": 1.0}), "a": ArrayRecord()}
    )
    assert serialize(content) == recorddict_to_proto(content).SerializeToString()
    assert serialize(RecordDict()) == b""


def test_a_server_that_was_gone_for_a_time_is_reached_again_within_a_tenth_of_it() -> None:
    passed, waits = 0.0, list(islice(retry_pauses(Random(3)), 1000))
    for wait in waits:
        assert 0.08 <= wait <= 0.15 + 0.1 * passed
        passed += wait
    assert 2.8 < max(waits) <= 3.0, "a server that is gone for long is rarely asked"
