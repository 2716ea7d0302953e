"""Silence of nodes: heartbeats separate lost clients from slow ones long before the SuperLink does.

Clients of fedloom send a heartbeat every 0.75 s while they answer a request. The SuperLink keeps the time of the last
one, but counts a node as connected for another 20 s. Flower's stock clients send them every 25 s, and are not judged.
The connection of a restarted client is no heartbeat: what its process had received before is lost.
"""

import time
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from common.heartbeat import PROMISE_SECONDS, RESTART_SECONDS, SILENCE_SECONDS

LOOK_SECONDS = 0.25  # seconds between two looks at the heartbeats
MAX_STEP_SECONDS = (
    0.5  # seconds that one look can add: while this process or the SuperLink stood still, nobody was heard
)


class BeatingNode(Protocol):
    """Part of Flower's description of a node that its heartbeats need."""

    @property
    def node_id(self) -> int:
        """Id at the server."""

    @property
    def heartbeat_interval(self) -> float:
        """Interval that the node promised, in seconds."""

    @property
    def last_activated_at(self) -> str:
        """Time of its last connection."""

    @property
    def online_until(self) -> float:
        """Time at which the SuperLink misses the node; each heartbeat moves it."""


class Liveness:
    """Record of the last heartbeat of each node.

    Args:
        list_nodes: Query of the connected nodes.
        clock: Monotonic seconds.
    """

    def __init__(
        self, list_nodes: Callable[[], Iterable[BeatingNode]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._list_nodes, self._clock = list_nodes, clock
        self._beats: dict[int, float] = {}
        self._connected: dict[int, str] = {}
        self._waited: dict[int, float] = {}
        self._looked = 0.0
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

    def audible(self, nodes: Iterable[int]) -> list[int]:
        """Return the nodes without those that are silent still; a restarted node can answer a new request."""
        if self._silent:
            self._look(0.0, self._waited)
        return [node for node in nodes if node not in self._silent - self._restarted]

    def _look(self, passed: float, awaited: Collection[int]) -> None:
        nodes = [node for node in self._list_nodes() if node.heartbeat_interval == PROMISE_SECONDS]
        beats = {node.node_id: node.online_until for node in nodes}
        connected = {node.node_id: node.last_activated_at for node in nodes}
        same = {node for node, until in beats.items() if self._beats.get(node) == until}
        again = {node for node, since in connected.items() if self._connected.get(node, since) != since}
        self._waited = {node: self._waited.get(node, 0.0) + passed for node in same.intersection(awaited)}
        self._waited |= dict.fromkeys(again.intersection(awaited), SILENCE_SECONDS - RESTART_SECONDS)
        late = {node for node, seconds in self._waited.items() if seconds >= SILENCE_SECONDS}
        self._restarted = frozenset(again | (self._restarted & same))
        self._beats, self._connected, self._silent = beats, connected, frozenset(late | (self._silent & same))
