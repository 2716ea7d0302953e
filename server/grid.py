"""The server's door to its clients: Flower's Grid, polled in milliseconds, with a quorum and a deadline."""

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from flwr.app import Message, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.run import Run

FIRST_PAUSE, PAUSE_GROWTH, LONGEST_PAUSE = 0.002, 1.4, 0.1  # seconds between two polls, while nothing arrives
HEAD_START = 0.6  # the first poll comes after this share of the shortest recent time to an answer: polls cost clients
RHYTHM = 3  # exchanges of a kind remembered for it; an evaluation is quicker than a training
LOST = (3, 4, 5)  # Flower's ErrorCode: the message, the reply or the node is unavailable
GRACE = 1.0  # seconds that stragglers get on top of their share, so that a very quick quorum shuts nobody out


@dataclass(frozen=True)
class RoundLimits:
    """How long a round waits, and for whom.

    Args:
        min_replies: Usable replies that make a round count.
        deadline: Seconds after which the round ends in any case.
        patience: Once the quorum is met, after t seconds, the others get patience · t + 1 s more: who is slow gets
            their time, who pulled the plug holds nobody up.
    """

    min_replies: int
    deadline: float
    patience: float

    def __post_init__(self) -> None:
        """Refuse limits under which no round could end well."""
        if self.min_replies < 1 or self.deadline <= 0 or self.patience < 0:
            raise ValueError(f"need min_replies >= 1, deadline > 0 and patience >= 0, not {self}")


@dataclass(frozen=True)
class Exchange:
    """What one round trip to the clients brought.

    Args:
        kind: Message type.
        asked: Node ids, in the order of the messages.
        replies: In that same order, so that a sum over them does not depend on who was quicker; errors are among them.
        missing: Node ids that did not answer.
        failed: Node id -> reason, for those that answered with an error.
        seconds: From the push to the end of the wait.
        bytes_down: Content sent, summed over the clients.
        bytes_up: Content received.
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
    """Wraps the Grid a ServerApp is given; everything but the waiting is that Grid's own.

    Args:
        grid: The Grid to ask.
        limits: When a round is over.
        on_exchange: Told of every exchange, for callers that only see `send_and_receive`.
        clock: Monotonic seconds.
        sleep: Waits for that many seconds.
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
        self._first_answers: dict[str, deque[float]] = defaultdict(lambda: deque([0.0], maxlen=RHYTHM))

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """The replies of `exchange`, as Flower's strategies ask for them."""
        return list(self.exchange(messages, timeout=timeout).replies)

    def exchange(self, messages: Iterable[Message], *, timeout: float | None = None) -> Exchange:
        """Send the messages and wait until all are answered, patience with the stragglers ends, or the deadline passes.

        An error counts as an answer but not towards the quorum. `timeout` can only shorten the deadline.
        """
        messages, start = list(messages), self._clock()
        accepted = set(self._grid.push_messages(messages))
        order = [message.metadata.message_id for message in messages]  # the push gives each message its id
        deadline = min(self._limits.deadline, math.inf if timeout is None else timeout)
        rhythm = self._first_answers[messages[0].metadata.message_type if messages else ""]
        arrived = self._wait_for(accepted.intersection(order), start, deadline, rhythm)
        answers = {identity: answer for identity, answer in arrived.items() if not _is_lost(answer)}
        exchange = _summary(messages, [answers.get(identity) for identity in order], self._clock() - start)
        self._on_exchange(exchange)
        return exchange

    def _wait_for(self, waiting: set[str], start: float, end: float, rhythm: deque[float]) -> dict[str, Message]:
        answers: dict[str, Message] = {}
        pause, usable = FIRST_PAUSE, 0
        if waiting:  # a poll that comes too early costs the clients time
            self._sleep(max(start + min(HEAD_START * min(rhythm), end) - self._clock(), 0))
        while waiting:
            arrived = self._pull(waiting)
            answers |= arrived
            waiting = waiting - arrived.keys()

            elapsed = self._clock() - start
            if arrived and len(arrived) == len(answers):
                rhythm.append(elapsed)
            quorum_before, usable = usable >= self._limits.min_replies, sum(a.has_content() for a in answers.values())
            if not quorum_before and usable >= self._limits.min_replies:
                end = min(end, elapsed * (1 + self._limits.patience) + GRACE)
            if not waiting or elapsed >= end:
                break
            pause = FIRST_PAUSE if arrived else min(pause * PAUSE_GROWTH, LONGEST_PAUSE)
            self._sleep(min(pause, end - elapsed))
        return answers

    def _pull(self, waiting: set[str]) -> dict[str, Message]:
        replies = ((reply.metadata.reply_to_message_id, reply) for reply in self._grid.pull_messages(waiting))
        return {identity: reply for identity, reply in replies if identity in waiting}

    @property
    def run(self) -> Run:
        """The run that the wrapped Grid serves."""
        return self._grid.run

    def set_run(self, run: Run) -> None:
        """Set the run on the wrapped Grid."""
        self._grid.set_run(run)

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        """A message made by the wrapped Grid."""
        return self._grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def get_node_ids(self) -> Iterable[int]:
        """Ids of the nodes connected now."""
        return self._grid.get_node_ids()

    def get_nodes(self) -> Iterable[NodeInfo]:
        """The nodes connected now."""
        return self._grid.get_nodes()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Push through the wrapped Grid."""
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Pull through the wrapped Grid."""
        return self._grid.pull_messages(message_ids)


def _is_lost(answer: Message) -> bool:
    """Whether this is the SuperLink's word that nobody will answer, and not an answer."""
    return answer.has_error() and answer.error.code in LOST


def _summary(messages: list[Message], answers: list[Message | None], seconds: float) -> Exchange:
    asked = tuple(message.metadata.dst_node_id for message in messages)
    replies = tuple(_signed(answer, node) for node, answer in zip(asked, answers, strict=True) if answer is not None)
    pairs = list(zip(asked, answers, strict=True))
    return Exchange(
        kind=messages[0].metadata.message_type if messages else "",
        asked=asked,
        replies=replies,
        missing=tuple(node for node, answer in pairs if answer is None),
        failed={node: answer.error.reason or "no reason" for node, answer in pairs if answer and answer.has_error()},
        seconds=seconds,
        bytes_down=_content_bytes(messages),
        bytes_up=_content_bytes(replies),
    )


def _signed(answer: Message, node: int) -> Message:
    """The answer with the name of the node that was asked: of a node that is gone, the SuperLink answers in its own."""
    answer.metadata.__dict__["_src_node_id"] = node
    return answer


def _content_bytes(messages: Iterable[Message]) -> int:
    """Of all of them; content that several share is measured once."""
    contents = [message.content for message in messages if message.has_content()]
    sizes = {identity: _size(content) for identity, content in {id(one): one for one in contents}.items()}
    return sum(sizes[id(content)] for content in contents)


def _size(content: RecordDict) -> int:
    groups = (content.array_records, content.metric_records, content.config_records)
    return sum(record.count_bytes() for records in groups for record in records.values())
