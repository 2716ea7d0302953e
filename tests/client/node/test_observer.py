"""Observer of a resident client: refusals while paused, and requests to leave."""

from collections.abc import Callable
from typing import Any

from flwr.app import Context, Message, RecordDict

from client.node.failures import NotAdmittedError, ServerAwayError
from client.node.observer import Observer
from common.errors import RefusedError
from common.wire.messages import REFUSED
from deploy.superlink.superlink import free_port
from tests.support.residents import RunningResident, app_of, echo, wait_until


class _Owner(Observer):
    """Observer that refuses while `paused`, and leaves on request."""

    paused, leaving = False, False

    def __init__(self, address: str, on_event: Callable[[str], None]) -> None:
        super().__init__(address, "ann", on_event)
        self.calls: list[str] = []

    @property
    def leaves(self) -> bool:
        return self.leaving

    def check(self, message: Message) -> None:
        if self.paused:
            raise RefusedError("paused by its owner")

    def begin(self, message: Message, context: Context) -> None:
        self.calls.append("begin")

    def finish(self, reply: Message, seconds: float) -> None:
        self.calls.append("finish")

    def acknowledge(self) -> None:
        self.calls.append("acknowledge")


def test_a_paused_client_refuses_at_once_and_goes_on_after_the_pause(fake: Any) -> None:
    events: list[str] = []
    owner = _Owner(fake.address, events.append)
    owner.paused = True
    fake.post(RecordDict())
    client = RunningResident(app_of(echo), fake.address, observer=owner)
    wait_until(lambda: len(fake.answers) == 1)
    assert (fake.answers[0].code, fake.answers[0].reason) == (REFUSED, "paused by its owner")
    owner.paused = False
    fake.post(RecordDict())
    wait_until(lambda: len(fake.replies) == 1)
    assert fake.replies[0]["answer"]["seen"] == 1
    client.leave()
    assert owner.calls == ["begin", "finish", "acknowledge"] * 2
    assert events == [f"connected to {fake.address} as ann", f"left {fake.address}"]


def test_a_request_to_leave_ends_the_client_between_two_messages(fake: Any) -> None:
    owner = _Owner(fake.address, lambda text: None)
    fake.post(RecordDict())
    client = RunningResident(app_of(echo), fake.address, observer=owner)
    wait_until(lambda: len(fake.replies) == 1)
    owner.leaving = True
    client.thread.join(5)
    assert not client.thread.is_alive()
    assert client.error is None
    wait_until(lambda: fake.events[-1] == ("leave", 7))


def test_a_client_leaves_while_its_server_is_absent(fake: Any) -> None:
    owner = _Owner(f"127.0.0.1:{free_port()}", lambda text: None)
    owner.leaving = True
    client = RunningResident(app_of(echo), owner.address, observer=owner)
    client.thread.join(5)
    assert not client.thread.is_alive()


def test_another_reason_for_a_failed_attempt_is_reported_at_once() -> None:
    events: list[str] = []
    observer = Observer("host:1", "ann", events.append)
    for _ in range(2):
        observer.away(ServerAwayError("no server at host:1"))
    observer.away(NotAdmittedError("the clock is wrong"))
    assert [event.partition(";")[0] for event in events] == ["no server at host:1", "the clock is wrong"]
