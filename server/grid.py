"""Exchange with clients: Flower's Grid, polled in milliseconds, with a quorum and a deadline."""

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from flwr.app import Message, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.run import Run

from server.round_limits import RoundLimits

# seconds between two polls while nothing arrives
FIRST_PAUSE_SECONDS, PAUSE_GROWTH, MAX_PAUSE_SECONDS = 0.002, 1.4, 0.1
# the first poll waits for this share of the shortest recent time to an answer, since polls slow clients down
HEAD_START_SHARE = 0.6
RECENT_EXCHANGES = 3  # recent exchanges of a message type behind that time; an evaluation is faster than a training
LOST_CODES = (3, 4, 5)  # Flower's ErrorCode: the message, the reply or the node is unavailable


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
    """

    kind: str
    asked: tuple[int, ...]
    replies: tuple[Message, ...]
    missing: tuple[int, ...]
    failed: dict[int, str]
    seconds: float
    bytes_down: int
    bytes_up: int


class PollingGrid(Grid):
    """Wrapper of the Grid of a ServerApp with its own waiting; all else is delegated.

    Args:
        grid: The wrapped Grid.
        limits: Limits of a round.
        on_exchange: Callback of every exchange, for callers that only see `send_and_receive`.
        clock: Monotonic seconds.
        sleep: Function that waits a number of seconds.
    """

    def __init__(
        self,
        grid: Grid,
        limits: RoundLimits,
        on_exchange: Callable[[Exchange], None] = lambda exchange: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._grid, self._limits, self._on_exchange = grid, limits, on_exchange
        self._clock, self._sleep = clock, sleep
        self._first_answers: dict[str, deque[float]] = defaultdict(lambda: deque([0.0], maxlen=RECENT_EXCHANGES))

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Return the replies of `exchange`, as Flower's strategies request them."""
        return list(self.exchange(messages, timeout=timeout).replies)

    def exchange(self, messages: Iterable[Message], *, timeout: float | None = None) -> Exchange:
        """Send the messages and wait for all answers, the end of patience or the deadline.

        An error is an answer, but does not count towards the quorum. `timeout` can only shorten the deadline.
        """
        messages, start = list(messages), self._clock()
        accepted = set(self._grid.push_messages(messages))
        order = [message.metadata.message_id for message in messages]  # the push assigns each message its id
        deadline = min(self._limits.deadline, math.inf if timeout is None else timeout)
        rhythm = self._first_answers[messages[0].metadata.message_type if messages else ""]
        arrived = self._wait_for(accepted.intersection(order), start, deadline, rhythm)
        answers = {identity: answer for identity, answer in arrived.items() if not _is_lost(answer)}
        exchange = _summarize(messages, [answers.get(identity) for identity in order], self._clock() - start)
        self._on_exchange(exchange)
        return exchange

    def _wait_for(self, waiting: set[str], start: float, end: float, rhythm: deque[float]) -> dict[str, Message]:
        answers: dict[str, Message] = {}
        pause, usable = FIRST_PAUSE_SECONDS, 0
        if waiting:  # an early poll slows the clients down
            self._sleep(max(start + min(HEAD_START_SHARE * min(rhythm), end) - self._clock(), 0))
        while waiting:
            arrived = self._pull(waiting)
            answers |= arrived
            waiting = waiting - arrived.keys()

            elapsed = self._clock() - start
            if arrived and len(arrived) == len(answers):
                rhythm.append(elapsed)
            quorum_before, usable = usable >= self._limits.min_replies, sum(a.has_content() for a in answers.values())
            if not quorum_before and usable >= self._limits.min_replies:
                end = min(end, self._limits.end_after_quorum(elapsed))
            if not waiting or elapsed >= end:
                break
            pause = FIRST_PAUSE_SECONDS if arrived else min(pause * PAUSE_GROWTH, MAX_PAUSE_SECONDS)
            self._sleep(min(pause, end - elapsed))
        return answers

    def _pull(self, waiting: set[str]) -> dict[str, Message]:
        replies = ((reply.metadata.reply_to_message_id, reply) for reply in self._grid.pull_messages(waiting))
        return {identity: reply for identity, reply in replies if identity in waiting}

    @property
    def run(self) -> Run:
        """Run of the wrapped Grid."""
        return self._grid.run

    def set_run(self, run: Run) -> None:
        """Set the run on the wrapped Grid."""
        self._grid.set_run(run)

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        """Create a message by the wrapped Grid."""
        return self._grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def get_node_ids(self) -> Iterable[int]:
        """Return the ids of the connected nodes."""
        return self._grid.get_node_ids()

    def get_nodes(self) -> Iterable[NodeInfo]:
        """Return the connected nodes."""
        return self._grid.get_nodes()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Push messages through the wrapped Grid."""
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Pull messages through the wrapped Grid."""
        return self._grid.pull_messages(message_ids)


def _is_lost(answer: Message) -> bool:
    """Return True if the SuperLink reports that no answer will come."""
    return answer.has_error() and answer.error.code in LOST_CODES


def _summarize(messages: list[Message], answers: list[Message | None], seconds: float) -> Exchange:
    nodes = tuple(message.metadata.dst_node_id for message in messages)
    replies = tuple(
        _set_sender(answer, node) for node, answer in zip(nodes, answers, strict=True) if answer is not None
    )
    pairs = list(zip(nodes, answers, strict=True))
    return Exchange(
        kind=messages[0].metadata.message_type if messages else "",
        asked=nodes,
        replies=replies,
        missing=tuple(node for node, answer in pairs if answer is None),
        failed={node: answer.error.reason or "no reason" for node, answer in pairs if answer and answer.has_error()},
        seconds=seconds,
        bytes_down=_content_bytes(messages),
        bytes_up=_content_bytes(replies),
    )


def _set_sender(answer: Message, node: int) -> Message:
    """Return the answer with the requested node as its sender.

    For a lost node the SuperLink answers in its own name.
    """
    answer.metadata.__dict__["_src_node_id"] = node
    return answer


def _content_bytes(messages: Iterable[Message]) -> int:
    """Return the size of all contents; content shared by several messages is measured once."""
    contents = [message.content for message in messages if message.has_content()]
    sizes = {identity: _size(content) for identity, content in {id(content): content for content in contents}.items()}
    return sum(sizes[id(content)] for content in contents)


def _size(content: RecordDict) -> int:
    groups = (content.array_records, content.metric_records, content.config_records)
    return sum(record.count_bytes() for records in groups for record in records.values())
