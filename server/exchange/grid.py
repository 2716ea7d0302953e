"""Exchange with clients over Flower's Grid: polling, quorum, deadline, silent nodes.

Heartbeats separate lost clients from slow ones long before the SuperLink does. Clients of fedloom send one every 0.75 s
while they answer a request. The SuperLink keeps the time of the last one, but counts a node as connected for another 20 s.
"""

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from flwr.app import Error, Message, RecordDict
from flwr.serverapp import Grid

from common.errors import WireError
from common.text import printable
from common.wire.codec import Handed, record_size
from common.wire.messages import FAILED, PROMISE_SECONDS, RESTART_SECONDS, SILENCE_SECONDS
from server.exchange.flower import NodeInfo, Run


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


MEGABYTE = 10**6


def limit_to(message: Message, most: int) -> Message:
    """Return a message with the largest size of its reply in bytes; the door refuses a larger one unread."""
    message.metadata.__dict__[_MOST] = most
    return message


def reply_limit(message: Message) -> int:
    """Return the largest size in bytes of the reply to a message; 0 if it is not known."""
    return int(message.metadata.__dict__.get(_MOST, 0))


def set_beside(message: Message, *, value: bool) -> Message:
    """Return a message whose answer may come during later exchanges, or may not."""
    message.metadata.__dict__[_BESIDE] = value
    return message


def is_beside(message: Message) -> bool:
    """Return True for a message whose answer may come during later exchanges."""
    return bool(message.metadata.__dict__.get(_BESIDE, False))


_MOST, _BESIDE = "most", "beside"


def refuse_oversize(reply: Message, asked: Message) -> Message:
    """Return a reply, or an error in place of one beyond the limit of its request, which no door refused."""
    most = reply_limit(asked)
    if not most or reply.has_error() or isinstance(reply.content, Handed):
        return reply
    size = content_size(reply.content)
    text = f"reply of {size:,} bytes, at most {most:,} can be needed"
    return Message(Error(FAILED, text), reply_to=asked) if size > most else reply


def content_of(message: Message) -> RecordDict:
    """Return the content of a message.

    Raises:
        WireError: The message is an error, with its reason as text.
    """
    if message.has_error():
        raise WireError(message.error.reason or f"error {message.error.code}")
    return message.content


GRACE_SECONDS = 1.0  # added to the time of stragglers, which a very fast quorum would otherwise exclude


@dataclass(frozen=True)
class RoundLimits:
    """Quorum and time limits of a round.

    Args:
        min_replies: Usable replies that make a round count.
        deadline: Seconds after which the round ends in any case.
        patience: Factor p; after a quorum at t seconds the remaining clients have p · t + 1 seconds more.
    """

    min_replies: int
    deadline: float
    patience: float

    def __post_init__(self) -> None:
        """Refuse limits under which no round could count."""
        if self.min_replies < 1 or self.deadline <= 0 or self.patience < 0:
            raise ValueError(f"need min_replies >= 1, deadline > 0 and patience >= 0, not {self}")

    def end_after_quorum(self, elapsed: float) -> float:
        """Return the end of a round whose quorum is met after `elapsed` seconds, in seconds from its start."""
        return elapsed * (1 + self.patience) + GRACE_SECONDS


LOOK_SECONDS = 0.25  # seconds between two looks at the heartbeats
MAX_STEP_SECONDS = (
    0.5  # seconds that one look can add: while this process or the SuperLink stood still, nobody was heard
)


class Liveness:
    """Record of the last heartbeat of each node.

    Args:
        list_nodes: Query of the connected nodes, as Flower describes them; each heartbeat moves their `online_until`.
        clock: Monotonic seconds.
    """

    def __init__(self, list_nodes: Callable[[], Iterable[Any]], clock: Callable[[], float] = time.monotonic) -> None:
        self._list_nodes, self._clock = list_nodes, clock
        self._beats: dict[int, float] = {}
        self._connected: dict[int, str] = {}
        self._waited: dict[int, float] = {}
        self._looked = 0.0
        self._stock = set[int]()
        """Flower's own nodes, which it judges itself."""
        self._silent: frozenset[int] = frozenset()
        self._restarted: frozenset[int] = frozenset()
        """Nodes without a heartbeat since they connected again."""

    def begin(self) -> None:
        """Begin to wait for answers; time before that counts only for a node that an earlier wait has left."""
        if self._silent:
            self._look(0.0, self._waited)
        self._looked = self._clock()
        self._silent -= self._restarted
        self._waited = {node: seconds for node, seconds in self._waited.items() if node not in self._restarted}

    def silent(self, nodes: Collection[int]) -> frozenset[int]:
        """Return those of the nodes that have sent no heartbeat for too long while answers were awaited."""
        now = self._clock()
        self._waited = {node: seconds for node, seconds in self._waited.items() if node in nodes}
        if now - self._looked >= LOOK_SECONDS:
            self._look(min(now - self._looked, MAX_STEP_SECONDS), nodes)
            self._looked = now
        return self._silent.intersection(nodes)

    def audible(self, nodes: Iterable[int], hidden: Collection[int] = ()) -> list[int]:
        """Return the nodes without hidden and silent ones; a restarted node can answer a new request."""
        if self._silent:
            self._look(0.0, self._waited)
        mute = self._silent - self._restarted
        return [node for node in nodes if node not in hidden and node not in mute]

    def _look(self, seconds: float, awaited: Collection[int]) -> None:
        listed = [*self._list_nodes()]
        nodes = [node for node in listed if node.heartbeat_interval == PROMISE_SECONDS]
        self._stock |= {node.node_id for node in listed if node.heartbeat_interval != PROMISE_SECONDS}
        beats = {node.node_id: node.online_until for node in nodes}
        connected = {node.node_id: node.last_activated_at for node in nodes}
        same = {node for node, until in beats.items() if self._beats.get(node) == until}
        same |= {*awaited} - beats.keys() - self._stock if self._beats or beats else set()  # they have left
        again = {node for node, since in connected.items() if self._connected.get(node, since) != since}
        self._waited = {node: self._waited.get(node, 0.0) + seconds for node in same.intersection(awaited)}
        self._waited |= dict.fromkeys(again.intersection(awaited), SILENCE_SECONDS - RESTART_SECONDS)
        late = {node for node, waited in self._waited.items() if waited >= SILENCE_SECONDS}
        self._restarted = frozenset(again | (self._restarted & same))
        self._beats, self._connected, self._silent = beats, connected, frozenset(late | (self._silent & same))


# seconds between two polls while nothing arrives
FIRST_PAUSE_SECONDS, PAUSE_GROWTH, MAX_PAUSE_SECONDS = 0.002, 1.4, 0.1
# the first poll waits for this share of the shortest recent time to an answer, since polls slow clients down
HEAD_START_SHARE = 0.6
RECENT_EXCHANGES = 3  # recent exchanges of a message type behind that time; an evaluation is faster than a training
LOST_CODES = (3, 4, 5)  # Flower's ErrorCode: the message, the reply or the node is unavailable


Take = Callable[[int, Message], None]
"""Takes the answer of a node as it arrives; it may replace the content."""


class WrappedGrid(Grid):
    """Wrapper of a Grid, to which it delegates everything that a subclass does not change."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

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

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Send messages through the wrapped Grid and return the answers."""
        return self._grid.send_and_receive(messages, timeout=timeout)


class PollingGrid(WrappedGrid):
    """Wrapper of the Grid of a ServerApp with its own waiting; all else is delegated.

    Args:
        grid: The wrapped Grid.
        limits: Limits of a round.
        on_exchange: Callback of every exchange, for callers that only see `send_and_receive`.
        clock: Monotonic seconds.
        sleep: Function that waits a number of seconds.
        liveness: Record of heartbeats, shared by the wrappers of a Grid.
        hidden: Connected nodes that are no clients, as they are when nodes are listed.
        take: Callback of every answer, for callers that only see `send_and_receive`.
    """

    def __init__(
        self,
        grid: Grid,
        limits: RoundLimits,
        on_exchange: Callable[[Exchange], None] = lambda exchange: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        liveness: Liveness | None = None,
        hidden: Collection[int] = (),
        take: Take = lambda node, answer: None,
    ) -> None:
        super().__init__(grid)
        self._liveness = liveness or Liveness(grid.get_nodes, clock)
        self._limits, self._on_exchange, self._hidden = limits, on_exchange, hidden
        self._clock, self._sleep, self._take = clock, sleep, take
        self._first_answers: dict[str, deque[float]] = defaultdict(lambda: deque([0.0], maxlen=RECENT_EXCHANGES))
        self._posted: dict[str, Message] = {}
        self.on_look: Callable[[], None] = lambda: None
        """Callback several times a second while answers are awaited."""

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Return the replies of `exchange`, as Flower's strategies request them."""
        return list(self.exchange(messages, timeout=timeout, take=self._take).replies)

    def exchange(
        self, messages: Iterable[Message], *, timeout: float | None = None, take: Take = lambda node, answer: None
    ) -> Exchange:
        """Send the messages and wait for all answers, the end of patience or the deadline.

        Nodes that stop sending heartbeats are not waited for. An error is an answer, but does not count towards the
        quorum. `timeout` can only shorten the deadline. `take` gets each answer as it arrives.
        """
        messages, start = list(messages), self._clock()
        accepted = set(self._grid.push_messages(messages))
        order = [message.metadata.message_id for message in messages]  # the push assigns each message its id
        deadline = min(self._limits.deadline, math.inf if timeout is None else timeout)
        rhythm = self._first_answers[messages[0].metadata.message_type if messages else ""]
        asked = {m.metadata.message_id: m for m in messages if m.metadata.message_id in accepted}
        arrived = self._wait_for(asked, start, deadline, rhythm, take)
        answers = {identity: answer for identity, answer in arrived.items() if not _is_lost(answer.message)}
        exchange = summarize_exchange(messages, [answers.get(identity) for identity in order], self._clock() - start)
        self._on_exchange(exchange)
        return exchange

    def post(self, messages: Iterable[Message]) -> list[Message]:
        """Send messages beside the exchanges; return the answers that they or earlier ones have by now.

        Nobody waits for an answer. It is left out if its node was sent another message since.
        """
        new = {message.metadata.dst_node_id: set_beside(message, value=True) for message in messages}
        for identity, message in [*self._posted.items()]:
            if message.metadata.dst_node_id in new:
                set_beside(self._posted.pop(identity), value=False)
        accepted = {*self._grid.push_messages(new.values())} if new else set[str]()
        self._posted |= {m.metadata.message_id: m for m in new.values() if m.metadata.message_id in accepted}
        arrived = self._pull(self._posted, {*self._posted}, lambda node, answer: None) if self._posted else {}
        nodes = {identity: self._posted.pop(identity).metadata.dst_node_id for identity in arrived}
        return [_set_sender(answer, nodes[one]) for one, answer in arrived.items() if not _is_lost(answer)]

    def _wait_for(
        self, asked: Mapping[str, Message], start: float, end: float, rhythm: deque[float], take: Take
    ) -> dict[str, Answer]:
        """Return message id -> answer, for messages of which each node was sent one."""
        nodes = {identity: message.metadata.dst_node_id for identity, message in asked.items()}
        waiting = set(nodes)
        self._liveness.begin()
        answers: dict[str, Answer] = {}
        pause, usable, looked = FIRST_PAUSE_SECONDS, 0, start
        if waiting:  # an early poll slows the clients down
            self._sleep(max(start + min(HEAD_START_SHARE * min(rhythm), end) - self._clock(), 0))
        while waiting:
            began = self._clock()
            arrived = self._pull(asked, waiting, take)
            elapsed = self._clock() - start
            answers |= {identity: Answer(message, elapsed) for identity, message in arrived.items()}
            waiting = waiting - arrived.keys()

            if arrived and len(arrived) == len(answers):
                rhythm.append(elapsed)
            quorum_before = usable >= self._limits.min_replies
            usable = sum(answer.message.has_content() for answer in answers.values())
            if not quorum_before and usable >= self._limits.min_replies:
                end = min(end, self._limits.end_after_quorum(elapsed))
            if began - looked >= LOOK_SECONDS:
                looked = began
                self.on_look()
            silent = self._liveness.silent({nodes[identity] for identity in waiting})
            waiting = {identity for identity in waiting if nodes[identity] not in silent}
            if not waiting or elapsed >= end:
                break
            pause = FIRST_PAUSE_SECONDS if arrived else min(pause * PAUSE_GROWTH, MAX_PAUSE_SECONDS)
            self._sleep(max(min(began + pause, start + end) - self._clock(), 0))
        return answers

    def _pull(self, asked: Mapping[str, Message], waiting: set[str], take: Take) -> dict[str, Message]:
        """Return the answers that are there, each taken before the next one is pulled."""
        arrived: dict[str, Message] = {}
        for reply in self._grid.pull_messages(waiting):
            identity = reply.metadata.reply_to_message_id
            if identity in waiting and identity not in arrived:
                reply = refuse_oversize(reply, asked[identity])
                take(asked[identity].metadata.dst_node_id, reply)
                arrived[identity] = reply
        return arrived

    def get_node_ids(self) -> Iterable[int]:
        """Return the ids of the connected clients, without those that send no heartbeats."""
        return self._liveness.audible([*self._grid.get_node_ids()], self._hidden)


def _is_lost(answer: Message) -> bool:
    """Return True if the SuperLink reports that no answer will come."""
    return answer.has_error() and answer.error.code in LOST_CODES
