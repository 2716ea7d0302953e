"""Contract with Flower's HttpGrid; late content holds up nobody."""

from collections.abc import Iterable
from typing import Any

import pytest
from flwr.app import ConfigRecord, Message, Metadata, RecordDict
from flwr.app.message import make_message
from flwr.proto import message_pb2 as proto
from flwr.proto.message_pb2 import ConfirmMessageReceivedResponse, ObjectTree, PullObjectResponse
from flwr.proto.runtime_pb2 import PullAppMessagesResponse
from flwr.supercore.constant import HEAD_BODY_DIVIDER
from flwr.supercore.inflatable.inflatable_object import (
    InflatableObject,
    add_header_to_object_body,
    get_all_nested_objects,
    get_object_id,
)
from flwr.supercore.run import Run
from flwr.superlink.grid.http_grid import HttpGrid

from server.exchange.flower import MISSING_CODE, Uploads, prompt_pull
from server.exchange.grid import Liveness, PollingGrid
from tests.server.exchange.test_liveness import Nodes
from tests.server.fake_grid import LIMITS, Clock, FakeGrid, instruction


def test_only_a_grid_with_a_connection_is_pulled_by_it() -> None:
    http, fake = HttpGrid(token="token"), FakeGrid(Clock(), [])
    assert prompt_pull(http, 1.0) != http.pull_messages
    assert prompt_pull(fake, 1.0) == fake.pull_messages


class SuperLink:
    """In place of HttpGrid's line: two replies, to the messages `a` and `b`, with the objects that were uploaded of each.

    An object in `late` is not available, one in `gone` is not found.
    """

    def __init__(self, uploads: list[tuple[str, dict[str, bytes]]], asked: tuple[str, str] = ("a", "b")) -> None:
        self.uploads, self.asked = uploads, asked
        self.late, self.gone, self.asks = set[str](), set[str](), list[str]()

    def PullMessages(self, request: Any) -> PullAppMessagesResponse:
        answer = PullAppMessagesResponse()
        self.asks += request.message_ids
        for identity, (root, parts) in zip(self.asked, self.uploads, strict=True):
            if identity in request.message_ids:
                metadata = proto.Metadata(message_id=root, reply_to_message_id=identity)
                answer.messages_list.append(proto.Message(metadata=metadata))
                children = [ObjectTree(object_id=part) for part in parts if part != root]
                answer.message_object_trees.append(ObjectTree(object_id=root, children=children))
        return answer

    def PullObject(self, request: Any) -> PullObjectResponse:
        content = {identity: part for _, parts in self.uploads for identity, part in parts.items()}[request.object_id]
        if request.object_id in self.gone:
            return PullObjectResponse(object_found=False)
        return PullObjectResponse(
            object_found=True, object_available=request.object_id not in self.late, object_content=content
        )

    def ConfirmMessageReceived(self, request: Any) -> ConfirmMessageReceivedResponse:
        return ConfirmMessageReceivedResponse()


def upload(thing: InflatableObject) -> tuple[str, dict[str, bytes]]:
    """Return a root and its objects, correctly hashed."""
    return thing.object_id, {identity: part.deflate() for identity, part in get_all_nested_objects(thing).items()}


def answer_to(identity: str) -> Message:
    metadata = Metadata(1, "", 7, 1, identity, "", 2e9, 1000.0, "train")
    return make_message(metadata, RecordDict({"note": ConfigRecord({"to": identity})}))


def garbage() -> tuple[str, dict[str, bytes]]:
    content = add_header_to_object_body(b"\xff no message", answer_to("b"))
    parts = upload(answer_to("b"))[1]
    return get_object_id(content), {**parts, get_object_id(content): content}


def childless() -> tuple[str, dict[str, bytes]]:
    root, parts = upload(answer_to("b"))
    return root, {root: parts[root]}


def of_another_content() -> tuple[str, dict[str, bytes]]:
    """Return a message whose child is a ConfigRecord."""
    record = ConfigRecord({"to": "b"})
    message = answer_to("b")
    head, body = message.deflate().split(HEAD_BODY_DIVIDER, 1)
    content = head.replace(message.content.object_id.encode(), record.object_id.encode()) + HEAD_BODY_DIVIDER + body
    return get_object_id(content), {record.object_id: record.deflate(), get_object_id(content): content}


@pytest.mark.parametrize(
    "odd",
    [
        garbage(),
        childless(),
        of_another_content(),
        upload(RecordDict()),
        (get_object_id(b""), {get_object_id(b""): b""}),
    ],
)
def test_a_malformed_upload_makes_one_client_missing(
    odd: tuple[str, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived = connect(SuperLink([upload(answer_to("a")), odd]), monkeypatch).pull(["a", "b"])
    [reply] = [reply for reply in arrived if reply.metadata.reply_to_message_id]
    assert reply.content.config_records["note"]["to"] == "a"


def connect(superlink: SuperLink, monkeypatch: pytest.MonkeyPatch, clock: Clock | None = None) -> Uploads:
    grid = HttpGrid(token="token")
    grid.set_run(Run.create_empty(run_id=1))
    monkeypatch.setattr(grid, "_client", superlink)
    return Uploads(grid, 5.0, clock or Clock())


def test_a_reply_does_not_wait_for_the_content_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    superlink = SuperLink([upload(answer_to("a")), upload(answer_to("b"))])
    superlink.late = {superlink.uploads[1][0]}
    uploads = connect(superlink, monkeypatch)
    assert [reply.metadata.reply_to_message_id for reply in uploads.pull(["a", "b"])] == ["a"]
    assert not [*uploads.pull(["b"])]
    superlink.late = set()
    [reply] = uploads.pull(["b"])
    assert reply.content.config_records["note"]["to"] == "b"
    assert superlink.asks.count("b") == 1, "the SuperLink announces a reply once"


def test_the_content_of_a_reply_is_fetched_once_the_one_before_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    uploads = connect(SuperLink([upload(answer_to("a")), upload(answer_to("b"))]), monkeypatch)
    pulling = uploads.pull(["a", "b"])
    next(pulling)
    assert [(identity, reply.contents) for identity, reply in uploads._announced.items()] == [("b", {})]
    assert next(pulling).content.config_records["note"]["to"] == "b"
    assert not uploads._announced


def test_content_that_is_gone_or_late_becomes_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, superlink = Clock(), SuperLink([upload(answer_to("a")), upload(answer_to("b"))])
    superlink.late, superlink.gone = {superlink.uploads[1][0]}, {superlink.uploads[0][0]}
    uploads = connect(superlink, monkeypatch, clock)
    [lost] = uploads.pull(["a", "b"])
    assert (lost.metadata.reply_to_message_id, lost.error.code) == ("a", MISSING_CODE)
    clock.sleep(4.9)
    assert not [*uploads.pull(["b"])]
    clock.sleep(0.2)
    [late] = uploads.pull(["b"])
    assert (late.metadata.reply_to_message_id, late.error.code) == ("b", MISSING_CODE)


class AnnouncingGrid(FakeGrid):
    """Grid of which `uploads` pulls the replies."""

    uploads: Uploads

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return self.uploads.pull(message_ids)


def test_a_client_that_freezes_before_its_content_is_sent_costs_three_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    nodes = Nodes(clock, 10, 11)
    nodes.dead = {11: 0.0}
    superlink = SuperLink([upload(answer_to("m0")), upload(answer_to("m1"))], ("m0", "m1"))
    superlink.late = {superlink.uploads[1][0]}
    grid = AnnouncingGrid(clock, [0.0, 0.0])
    grid.uploads = connect(superlink, monkeypatch, clock)
    polling = PollingGrid(grid, LIMITS, clock=clock, sleep=clock.sleep, liveness=Liveness(nodes, clock))
    result = polling.exchange([instruction(10), instruction(11)])
    assert (result.missing, result.seconds) == ((11,), pytest.approx(2.75, abs=0.3))
