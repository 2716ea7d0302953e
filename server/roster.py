"""Who takes part: nodes that enrolled under a stable name, and those that refused, with their reasons."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

REFUSED = 60.0  # seconds after which a node that refused is invited again: its owner may have changed its mind


@dataclass(frozen=True)
class EnrolledClient:
    """An enrolled client."""

    name: str
    node: int
    enrolment: str
    examples: int
    budget: float = 0.0
    """What it could still spend when it enrolled; 0 in runs without noise."""
    shares_metrics: bool = False
    """Whether it will tell metrics of its held-out data."""


@dataclass
class Roster:
    """Nodes by what they answered to the invitation."""

    clock: Callable[[], float] = time.monotonic
    clients: dict[int, EnrolledClient] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    later: dict[int, tuple[float, int]] = field(default_factory=dict)
    """Node that refused -> when it is invited again, and the node after whose leaving it is invited at once."""

    present: frozenset[int] = frozenset()
    """Nodes that were online when strangers were last looked for."""

    spent: dict[str, float] = field(default_factory=dict)
    """Client -> what it was asked to spend of its privacy budget in this run."""

    def strangers(self, online: Iterable[int]) -> list[int]:
        """Nodes to invite: online and not enrolled; who refused, only later, or at once if it left and came back."""
        self.present, now = frozenset(online), self.clock()
        for node in self.refused.keys() - self.present:
            self._pardon(node)
        waiting = {node for node, (until, holder) in self.later.items() if now < until and holder in self.present}
        return sorted(self.present - self.clients.keys() - waiting)

    def enrol(self, client: EnrolledClient) -> None:
        """Take a client in; a name belongs to the node that came first, and to its successor once that node left."""
        holder = next((c for c in self.clients.values() if c.name == client.name and c.node != client.node), None)
        if holder is not None and holder.node in self.present:
            taken = f"another node is already enrolled as '{client.name}'; give this one its own --name"
            self.refuse(client.node, taken, holder.node)
            return
        if holder is not None:
            self.forget(holder.node)
        self._pardon(client.node)
        self.clients[client.node] = client

    def refuse(self, node: int, reason: str, holder: int | None = None) -> None:
        """Note that a node does not take part, and why; the `holder` of its name, if that is the reason."""
        self.refused[node] = reason
        self.later[node] = self.clock() + REFUSED, node if holder is None else holder

    def charge(self, node: int, cost: float) -> None:
        """Note that a client was asked to spend that; what it says when it enrols anew is the truth."""
        client = self.clients[node]
        self.clients[node] = replace(client, budget=client.budget - cost)
        self.spent[client.name] = self.spent.get(client.name, 0.0) + cost

    def forget(self, node: int) -> None:
        """Drop a client, to invite it anew at the next round."""
        self.clients.pop(node, None)

    def leave(self, node: int) -> str:
        """`forget`, and the name of who left."""
        name = self.name(node)
        self.forget(node)
        return name

    def able(self, online: Iterable[int]) -> dict[str, EnrolledClient]:
        """Enrolled clients that are online and have something to train on, by name."""
        present = set(online)
        return {c.name: c for n, c in self.clients.items() if n in present and c.examples > 0}

    def name(self, node: int) -> str:
        """A node's name for people."""
        return self.clients[node].name if node in self.clients else f"node {node}"

    def _pardon(self, node: int) -> None:
        self.refused.pop(node, None)
        self.later.pop(node, None)
