import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from client.node.failures import NotAdmittedError, Server
from client.node.fleet import Fleet
from client.node.polling import Polling
from client.node.resident import run_resident
from common.errors import DataError, RefusedError
from deploy.processes import free_port

EAGER = Polling(first=0.001, cap=0.02)


def _app(train: Callable[[Message, Context], Message]) -> ClientApp:
    app = ClientApp()
    app.train()(train)
    return app


def _echo(message: Message, context: Context) -> Message:
    seen = int(context.state.config_records["seen"]["count"]) if "seen" in context.state else 0  # type: ignore[arg-type]
    context.state["seen"] = ConfigRecord({"count": seen + 1})
    return Message(RecordDict({"answer": ConfigRecord({"seen": seen + 1})}), reply_to=message)


def _wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)


class _Running:
    """A resident client in a thread of this process."""

    def __init__(self, app: ClientApp, address: str, **options: Any) -> None:
        self.stop, self.events = threading.Event(), list[str]()
        self.error: Exception | None = None
        options = {"polling": EAGER, "random": Random(0), **options}
        self.thread = threading.Thread(target=self._run, args=(app, address, options), daemon=True)
        self.thread.start()

    def _run(self, app: ClientApp, address: str, options: dict[str, Any]) -> None:
        try:
            run_resident(app, Server(address), stop=self.stop, on_event=self.events.append, **options)
        except Exception as error:
            self.error = error

    def leave(self) -> float:
        start = time.monotonic()
        self.stop.set()
        self.thread.join(10)
        assert not self.thread.is_alive()
        return time.monotonic() - start


def test_messages_are_answered_in_sequence_and_state_is_stored(fake: Any) -> None:
    for _ in range(3):
        fake.post(RecordDict())
        time.sleep(0.001)
    client = _Running(_app(_echo), fake.address)
    _wait_until(lambda: len(fake.replies) == 3)
    assert [reply.content["answer"]["seen"] for reply in fake.replies] == [1, 2, 3]
    assert client.leave() < 2
    assert client.error is None
    assert fake.calls[-2:] == ["DeactivateNode", "UnregisterNode"]
    assert fake.calls.count("GetRun") == 1


def test_the_context_names_node_run_and_configuration(fake: Any) -> None:
    seen: list[Context] = []

    def look(message: Message, context: Context) -> Message:
        seen.append(context)
        return Message(RecordDict(), reply_to=message)

    fake.post(RecordDict())
    client = _Running(_app(look), fake.address, node_config={"home": "a"})
    _wait_until(lambda: len(fake.replies) == 1)
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
    client = _Running(_app(fail), fake.address)
    _wait_until(lambda: len(fake.replies) == 1)
    client.leave()
    assert fake.replies[0].error.reason == reason


def test_a_reply_to_a_finished_run_is_dropped_and_the_client_continues(fake: Any) -> None:
    fake.running = False
    fake.post(RecordDict())
    client = _Running(_app(_echo), fake.address)
    _wait_until(lambda: any("unanswered" in event for event in client.events))
    fake.running = True
    fake.post(RecordDict())
    _wait_until(lambda: len(fake.replies) == 1)
    client.leave()
    assert fake.replies[0].content["answer"]["seen"] == 2


def test_a_node_joins_again_if_the_server_forgot_it(fake: Any) -> None:
    client = _Running(_app(_echo), fake.address)
    _wait_until(lambda: "PullMessages" in fake.calls)
    fake.is_registered = False
    _wait_until(lambda: fake.calls.count("ActivateNode") == 2)
    fake.post(RecordDict())
    _wait_until(lambda: len(fake.replies) == 1)
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
    client = _Running(_app(train), fake.address)
    _wait_until(lambda: len(fake.replies) == 1)
    client.leave()
    assert len(trained) == 1


def test_leaving_is_fast_while_the_server_is_absent() -> None:
    client = _Running(_app(_echo), f"127.0.0.1:{free_port()}")
    _wait_until(lambda: any("no server at" in event for event in client.events))
    assert client.leave() < 1
    assert client.error is None


def test_a_key_that_is_never_admitted_ends_the_client(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fleet: Fleet) -> Fleet:
        raise NotAdmittedError("register its public key")

    monkeypatch.setattr(Fleet, "__enter__", refuse)
    client = _Running(_app(_echo), fake.address, patience=0.2)
    client.thread.join(5)
    assert isinstance(client.error, NotAdmittedError)
