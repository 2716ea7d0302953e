import time
from typing import Any

import pytest
from flwr.app import Context, Message, RecordDict

from client.node.failures import NotAdmittedError
from client.node.flower import Fleet
from client.node.resident import Polling
from common.errors import DataError, RefusedError
from common.wire.codec import encode
from common.wire.messages import ENROL, EnrolRequest
from deploy.superlink.superlink import free_port
from tests.support.residents import RunningResident, app_of, echo, wait_until


def test_messages_are_answered_in_sequence_and_state_is_stored(fake: Any) -> None:
    for _ in range(3):
        fake.post(RecordDict())
        time.sleep(0.001)
    client = RunningResident(app_of(echo), fake.address)
    wait_until(lambda: len(fake.replies) == 3)
    assert [reply.content["answer"]["seen"] for reply in fake.replies] == [1, 2, 3]
    assert client.leave() < 2
    assert client.error is None
    assert fake.calls[-2:] == ["DeactivateNode", "UnregisterNode"]
    assert fake.calls.count("GetRun") == 1


def test_an_invitation_sets_the_longest_pause_and_heartbeats_go_on(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an invitation for 30 s the client asks a few times, then rests; its node stays alive."""
    monkeypatch.setattr("client.node.flower.IDLE_SECONDS", 0.2)
    calm = Polling(first=0.5, growth=100.0, cap=0.5, courtesy=0.0, jitter=0.0)
    fake.post(encode(EnrolRequest("toy", "{}", "{}", poll_cap=30.0)), ENROL)
    client = RunningResident(app_of(echo), fake.address, polling=calm)
    wait_until(lambda: len(fake.replies) == 1)
    start = len(fake.calls)
    wait_until(lambda: fake.calls[start:].count("SendNodeHeartbeat") > 10)
    assert fake.calls[start:].count("PullMessages") <= 3
    client.leave()


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
    assert (context.node_config, context.run_config) == ({"home": "a"}, {"rounds": 3})


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
    wait_until(lambda: len(fake.replies) == 1)
    client.leave()
    assert fake.replies[0].error.reason == reason


def test_a_reply_to_a_finished_run_is_dropped_and_the_client_continues(fake: Any) -> None:
    fake.running = False
    fake.post(RecordDict())
    client = RunningResident(app_of(echo), fake.address)
    wait_until(lambda: any("unanswered" in event for event in client.events))
    fake.running = True
    fake.post(RecordDict())
    wait_until(lambda: len(fake.replies) == 1)
    client.leave()
    assert fake.replies[0].content["answer"]["seen"] == 2


def test_a_node_joins_again_if_the_server_forgot_it(fake: Any) -> None:
    client = RunningResident(app_of(echo), fake.address)
    wait_until(lambda: "PullMessages" in fake.calls)
    fake.is_registered = False
    wait_until(lambda: fake.calls.count("ActivateNode") == 2)
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

    from client.node.failures import ServerAwayError

    send, failures = Fleet.send, iter([True, True, False])

    def unreliable(fleet: Fleet, reply: Message, seconds: float = 0.0) -> None:
        if next(failures, False):
            raise ServerAwayError("gone")
        send(fleet, reply, seconds)

    monkeypatch.setattr(Fleet, "send", unreliable)
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


def test_a_key_that_is_never_admitted_ends_the_client(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fleet: Fleet) -> Fleet:
        raise NotAdmittedError("register its public key")

    monkeypatch.setattr(Fleet, "__enter__", refuse)
    client = RunningResident(app_of(echo), fake.address, patience=0.2)
    client.thread.join(5)
    assert isinstance(client.error, NotAdmittedError)
