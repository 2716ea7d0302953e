"""Roster of a run: enrolled nodes, refused nodes with reasons, and uniform cohorts."""

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from common.errors import ASKS_FORGETTING, PAUSED_BY_OWNER

REINVITE_SECONDS = 60.0  # seconds after which a node that refused is invited again: its policy may have changed

REVOKED = "has revoked this key"
"""Part of the reason for which the server refuses a node whose key is revoked."""

FORGOTTEN = "this run is made again without this client, which is forgotten"
"""Reason for which the server refuses a forgotten client."""


@dataclass(frozen=True)
class EnrolledClient:
    """Enrolled client."""

    name: str
    node: int
    enrolment: str
    examples: int
    budget: float = 0.0
    """Remaining budget at enrolment; 0 in runs without noise."""
    shares_metrics: bool = False
    """True if it sends metrics of its held-out data to the server."""
    ledger: str = ""
    """Head of its privacy ledger at enrolment; empty in runs without noise."""
    card: str = ""
    """Card with its key as a member of secure sums; empty without them."""


@dataclass
class Roster:
    """Nodes by their answers to the invitation."""

    clock: Callable[[], float] = time.monotonic
    clients: dict[int, EnrolledClient] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    later: dict[int, tuple[float, int]] = field(default_factory=dict)
    """Node that refused -> time of its next invitation, and the node whose departure allows it at once."""

    hosted: dict[int, str] = field(default_factory=dict)
    """Node of a hub's client -> its name."""

    registered: dict[int, str] = field(default_factory=dict)
    """Node that was refused -> name that its key has; empty if it has none."""

    present: frozenset[int] = frozenset()
    """Nodes that were online at the last call of `select_uninvited`."""

    spent: dict[str, float] = field(default_factory=dict)
    """Client -> privacy cost requested from it in this run."""

    _nodes: dict[str, int] = field(default_factory=dict)
    """Name -> node that enrolled under it last."""

    def select_uninvited(self, online: Iterable[int]) -> list[int]:
        """Return the nodes to invite: online and not enrolled.

        A node that refused is invited after a pause, or at once if it left and returned.
        """
        self.present, now = frozenset(online), self.clock()
        for node in self.refused.keys() - self.present:
            if REVOKED not in self.refused[node]:
                self._pardon(node)
        waiting = {node for node, (until, holder) in self.later.items() if now < until and holder in self.present}
        return sorted(self.present - self.clients.keys() - waiting)

    def enrol(self, client: EnrolledClient) -> None:
        """Enrol a client; a name belongs to its first node until that node has left or was revoked."""
        first = self._nodes.get(client.name, client.node)
        if REVOKED in self.refused.get(first, ""):
            self._pardon(first)
        holder = self.clients.get(first)
        if holder is not None and holder.name == client.name and holder.node != client.node:
            if holder.node in self.present:
                reason = f"another node is enrolled as '{client.name}'; set a different --name"
                self.refuse(client.node, reason, holder.node)
                return
            self.forget(holder.node)
        self._pardon(client.node)
        self.clients[client.node] = client
        self._nodes[client.name] = client.node

    def refuse(self, node: int, reason: str, holder: int | None = None) -> None:
        """Record that a node does not take part, with the reason; `holder` is the node that has its name."""
        self.refused[node] = reason
        self.later[node] = self.clock() + REINVITE_SECONDS, node if holder is None else holder

    def charge(self, node: int, cost: float) -> None:
        """Add a requested cost to a client's account; its next enrolment reports the true remaining budget."""
        client = self.clients[node]
        self.clients[node] = replace(client, budget=client.budget - cost)
        self.spent[client.name] = self.spent.get(client.name, 0.0) + cost

    def forget(self, node: int) -> None:
        """Remove a client; it is invited again in the next round."""
        self.clients.pop(node, None)

    def leave(self, node: int, reason: str = "") -> str:
        """Remove a client that failed and return its name; one that pauses or leaves is not invited soon."""
        name = self.name(node)
        self.forget(node)
        if PAUSED_BY_OWNER in reason or ASKS_FORGETTING in reason:
            self.refuse(node, reason)
        return name

    def select_trainable(self, online: Iterable[int]) -> dict[str, EnrolledClient]:
        """Return enrolled clients that are online and have training data, by name."""
        present = set(online)
        return {c.name: c for n, c in self.clients.items() if n in present and c.examples > 0}

    def by_name(self) -> dict[str, EnrolledClient]:
        """Return the enrolled clients by name."""
        return {client.name: client for client in self.clients.values()}

    def reasons(self) -> dict[str, int]:
        """Return reason -> number of the nodes that it keeps from taking part, in the order of the reasons."""
        return dict(sorted(Counter(self.refused.values()).items()))

    def name(self, node: int) -> str:
        """Return the display name of a node."""
        if node in self.clients:
            return self.clients[node].name
        if self.refused.get(node) == FORGOTTEN:
            return f"node-{node}"
        return self.hosted.get(node) or self.registered.get(node) or f"node-{node}"

    def names(self, nodes: Iterable[int]) -> dict[int, str]:
        """Return node -> display name."""
        return {node: self.name(node) for node in nodes}

    def _pardon(self, node: int) -> None:
        self.refused.pop(node, None)
        self.later.pop(node, None)


def cohort_size(clients: int, share: float, at_least: int) -> int:
    """Return ⌈share·K⌉ for K clients, at least `at_least`, at most all."""
    return min(clients, max(at_least, math.ceil(share * clients)))


def cohort(
    seed: int, round_number: int, clients: Collection[str], share: float, at_least: int, *stream: int
) -> list[str]:
    """Draw ⌈share·K⌉ of the K clients (at least `at_least`, at most all), sorted by name.

    The draw depends on seed, round, names and `stream` only: not on node ids, arrival order or clocks.
    """
    names = sorted(clients)
    size = cohort_size(len(names), share, at_least)
    if size == len(names):
        return names
    rng = np.random.default_rng([seed, round_number, *stream])
    return sorted(rng.choice(names, size=size, replace=False).tolist())
