"""Contract with Flower's HttpGrid; late content costs milliseconds."""

import time
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
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, ObjectUnavailableError
from flwr.supercore.run import Run
from flwr.superlink.grid import http_grid

from server.grid import PollingGrid
from server.round_limits import RoundLimits
from server.uploads import quick_uploads

NAMES = vars(http_grid)


def test_http_grid_still_pulls_objects_by_that_name() -> None:
    assert "pull_objects" in http_grid.HttpGrid.pull_messages.__code__.co_names


def test_late_content_costs_milliseconds() -> None:
    looks = 0

    def pull(object_id: str) -> bytes:
        nonlocal looks
        looks += 1
        if looks < 3:
            raise ObjectUnavailableError(object_id)
        return b"content"

    start = time.monotonic()
    with quick_uploads(deadline=5.0):
        assert NAMES["pull_objects"](["a"], pull) == {"a": b"content"}
    assert time.monotonic() - start < 0.7, "the first pause of Flower is at least 0.8 s"


def test_missing_content_is_given_up_at_the_deadline() -> None:
    def pull(object_id: str) -> bytes:
        raise ObjectUnavailableError(object_id)

    with quick_uploads(deadline=0.05), pytest.raises(ObjectPullError):
        NAMES["pull_objects"](["a"], pull)


def test_flower_is_unchanged_afterwards() -> None:
    before = dict(NAMES)
    with pytest.raises(RuntimeError, match="inside"), quick_uploads(deadline=1.0):
        raise RuntimeError("inside")
    assert before == NAMES


def test_http_grid_still_reads_content_by_that_name() -> None:
    assert "inflate_object_from_contents" in http_grid.HttpGrid.pull_messages.__code__.co_names


class SuperLink:
    """In place of HttpGrid's line: two replies, to the messages `a` and `b`, with the objects that were uploaded of each."""

    def __init__(self, uploads: list[tuple[str, dict[str, bytes]]]) -> None:
        self.uploads = uploads

    def PullMessages(self, request: Any) -> PullAppMessagesResponse:
        answer, asked = PullAppMessagesResponse(), ("a", "b")
        for identity, (root, parts) in zip(asked, self.uploads, strict=True):
            if identity in request.message_ids:
                metadata = proto.Metadata(message_id=root, reply_to_message_id=identity)
                answer.messages_list.append(proto.Message(metadata=metadata))
                children = [ObjectTree(object_id=part) for part in parts if part != root]
                answer.message_object_trees.append(ObjectTree(object_id=root, children=children))
        return answer

    def PullObject(self, request: Any) -> PullObjectResponse:
        content = {identity: part for _, parts in self.uploads for identity, part in parts.items()}[request.object_id]
        return PullObjectResponse(object_found=True, object_available=True, object_content=content)

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
    grid = http_grid.HttpGrid(token="token")
    grid.set_run(Run.create_empty(run_id=1))
    monkeypatch.setattr(grid, "_client", SuperLink([upload(answer_to("a")), odd]))
    with quick_uploads(deadline=1.0):
        arrived = PollingGrid(grid, RoundLimits(1, 5.0, 1.0))._pull({"a", "b"})
    assert list(arrived) == ["a"]
    assert arrived["a"].content.config_records["note"]["to"] == "a"
