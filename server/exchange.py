"""Outcome of one round trip to the clients: replies, absences, times and bytes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flwr.app import Message, RecordDict

from common.text import printable
from common.wire.codec import Handed
from common.wire.sizes import record_size

Pull = Callable[[Iterable[str]], Iterable[Message]]
"""Function from ids of messages to those of their replies that have arrived."""


class Weighed(RecordDict):
    """Content that is elsewhere: it travelled with that of other messages, or was taken as it arrived.

    Args:
        size: Its bytes.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size


class Answer(NamedTuple):
    """Answer of a node, and the seconds until it arrived."""

    message: Message
    seconds: float


@dataclass(frozen=True)
class Exchange:
    """Outcome of one round trip to the clients.

    Args:
        kind: Message type.
        asked: Node ids, in the order of the messages.
        replies: Replies in that order, errors included; sums over them do not depend on the order of arrival.
        missing: Node ids that did not answer.
        failed: Node id -> reason, for nodes that answered with an error.
        seconds: Time from the push to the end of the wait.
        bytes_down: Bytes of content sent, summed over the clients.
        bytes_up: Bytes of content received.
        durations: Node id -> seconds until its answer; in one process, until the answers of all.
        down_by_node: Node id -> bytes of content sent to it.
        up_by_node: Node id -> bytes of content received from it.
    """

    kind: str
    asked: tuple[int, ...]
    replies: tuple[Message, ...]
    missing: tuple[int, ...]
    failed: dict[int, str]
    seconds: float
    bytes_down: int
    bytes_up: int
    durations: dict[int, float]
    down_by_node: dict[int, int]
    up_by_node: dict[int, int]


def summarize_exchange(messages: Sequence[Message], answers: Sequence[Answer | None], seconds: float) -> Exchange:
    """Return the outcome of messages and their answers, in the same order; `seconds` is the whole wait."""
    nodes = tuple(message.metadata.dst_node_id for message in messages)
    pairs = [(node, answer) for node, answer in zip(nodes, answers, strict=True) if answer is not None]
    replies = tuple(_set_sender(answer.message, node) for node, answer in pairs)
    down = _content_bytes(messages)
    up = _content_bytes(replies)
    return Exchange(
        kind=messages[0].metadata.message_type if messages else "",
        asked=nodes,
        replies=replies,
        missing=tuple(node for node, answer in zip(nodes, answers, strict=True) if answer is None),
        failed={node: _reason(answer.message) for node, answer in pairs if answer.message.has_error()},
        seconds=seconds,
        bytes_down=sum(down),
        bytes_up=sum(up),
        durations={node: answer.seconds for node, answer in pairs},
        down_by_node=dict(zip(nodes, down, strict=True)),
        up_by_node=dict(zip((node for node, _ in pairs), up, strict=True)),
    )


def _reason(answer: Message) -> str:
    return printable(answer.error.reason or "") or "no reason"


def _set_sender(answer: Message, node: int) -> Message:
    """Return the answer with the requested node as its sender.

    For a lost node the SuperLink answers in its own name.
    """
    answer.metadata.__dict__["_src_node_id"] = node
    return answer


def _content_bytes(messages: Iterable[Message]) -> list[int]:
    """Return the size of each message's content; content shared by several messages is measured once."""
    contents = [message.content if message.has_content() else None for message in messages]
    distinct = {id(content): content for content in contents if content is not None}
    sizes = {identity: content_size(content) for identity, content in distinct.items()}
    return [sizes.get(id(content), 0) for content in contents]


def content_size(content: RecordDict) -> int:
    """Return the bytes of a content: of its share if it is shared, of its encoding if it is handed over."""
    if isinstance(content, Handed | Weighed):
        return content.size
    return sum(map(record_size, content.values()))  # views by type would hold the content until a garbage collection
