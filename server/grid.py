"""Exchange with clients: Flower's Grid, polled in milliseconds, with a quorum and a deadline."""

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping

from flwr.app import Message, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.run import Run

from server.exchange import Answer, Exchange, summarize_exchange
from server.liveness import Liveness
from server.round_limits import RoundLimits

# seconds between two polls while nothing arrives
FIRST_PAUSE_SECONDS, PAUSE_GROWTH, MAX_PAUSE_SECONDS = 0.002, 1.4, 0.1
# the first poll waits for this share of the shortest recent time to an answer, since polls slow clients down
HEAD_START_SHARE = 0.6
RECENT_EXCHANGES = 3  # recent exchanges of a message type behind that time; an evaluation is faster than a training
LOST_CODES = (3, 4, 5)  # Flower's ErrorCode: the message, the reply or the node is unavailable


Take = Callable[[int, Message], None]
"""Takes the answer of a node as it arrives; it may replace the content."""


class PollingGrid(Grid):
    """Wrapper of the Grid of a ServerApp with its own waiting; all else is delegated.

    Args:
        grid: The wrapped Grid.
        limits: Limits of a round.
        on_exchange: Callback of every exchange, for callers that only see `send_and_receive`.
        clock: Monotonic seconds.
        sleep: Function that waits a number of seconds.
        liveness: Record of heartbeats, shared by the wrappers of a Grid.
        hidden: Connected nodes that are no clients.
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
        hidden: Callable[[], Collection[int]] = tuple,
        take: Take = lambda node, answer: None,
    ) -> None:
        self._liveness = liveness or Liveness(grid.get_nodes, clock)
        self._grid, self._limits, self._on_exchange, self._hidden = grid, limits, on_exchange, hidden
        self._clock, self._sleep, self._take = clock, sleep, take
        self._first_answers: dict[str, deque[float]] = defaultdict(lambda: deque([0.0], maxlen=RECENT_EXCHANGES))

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
        nodes = {m.metadata.message_id: m.metadata.dst_node_id for m in messages if m.metadata.message_id in accepted}
        arrived = self._wait_for(nodes, start, deadline, rhythm, take)
        answers = {identity: answer for identity, answer in arrived.items() if not _is_lost(answer.message)}
        exchange = summarize_exchange(messages, [answers.get(identity) for identity in order], self._clock() - start)
        self._on_exchange(exchange)
        return exchange

    def _wait_for(
        self, nodes: Mapping[str, int], start: float, end: float, rhythm: deque[float], take: Take
    ) -> dict[str, Answer]:
        """Return message id -> answer, for messages of which each node was sent one."""
        waiting = set(nodes)
        self._liveness.begin()
        answers: dict[str, Answer] = {}
        pause, usable = FIRST_PAUSE_SECONDS, 0
        if waiting:  # an early poll slows the clients down
            self._sleep(max(start + min(HEAD_START_SHARE * min(rhythm), end) - self._clock(), 0))
        while waiting:
            arrived = self._pull(nodes, waiting, take)
            elapsed = self._clock() - start
            answers |= {identity: Answer(message, elapsed) for identity, message in arrived.items()}
            waiting = waiting - arrived.keys()

            if arrived and len(arrived) == len(answers):
                rhythm.append(elapsed)
            quorum_before = usable >= self._limits.min_replies
            usable = sum(answer.message.has_content() for answer in answers.values())
            if not quorum_before and usable >= self._limits.min_replies:
                end = min(end, self._limits.end_after_quorum(elapsed))
            silent = self._liveness.silent({nodes[identity] for identity in waiting})
            waiting = {identity for identity in waiting if nodes[identity] not in silent}
            if not waiting or elapsed >= end:
                break
            pause = FIRST_PAUSE_SECONDS if arrived else min(pause * PAUSE_GROWTH, MAX_PAUSE_SECONDS)
            self._sleep(min(pause, end - elapsed))
        return answers

    def _pull(self, nodes: Mapping[str, int], waiting: set[str], take: Take) -> dict[str, Message]:
        """Return the answers that are there, each taken before the next one is pulled."""
        arrived: dict[str, Message] = {}
        for reply in self._grid.pull_messages(waiting):
            identity = reply.metadata.reply_to_message_id
            if identity in waiting and identity not in arrived:
                take(nodes[identity], reply)
                arrived[identity] = reply
        return arrived

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
        """Return the ids of the connected clients, without those that send no heartbeats."""
        hidden = frozenset(self._hidden())
        return self._liveness.audible(node for node in self._grid.get_node_ids() if node not in hidden)

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
