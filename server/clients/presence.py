"""Clients of a run round by round: state, time, traffic, cost, and since when a client is gone."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field

from common.errors import PAUSED_BY_OWNER
from common.wire.messages import TRAIN
from server.clients.roster import REVOKED, Roster
from server.exchange.grid import Exchange
from server.record.events import ClientRound, ClientState, RoundEvent

MAX_CLIENTS = 1000
"""Largest number of clients of which a line has every one."""

SLOWEST = 100
"""Number of online clients in the line of a run with more clients: the slowest."""


@dataclass
class ClientTraffic:
    """Sums of one client over the exchanges of a round."""

    seconds: float = 0.0
    up: int = 0
    down: int = 0


@dataclass(frozen=True)
class Attendance:
    """Clients of one round.

    Args:
        clients: Client -> its round, at most `MAX_CLIENTS`.
        states: State -> number of clients.
        asked: Clients that were asked to train.
        unanswered: Those of them that did not answer.
        gone: Client without connection -> first round without its reply.
        lost: Client that took part before, but was not asked, or was revoked before it answered -> reason; empty if it is
            gone.
    """

    clients: dict[str, ClientRound] = field(default_factory=dict)
    states: dict[ClientState, int] = field(default_factory=dict)
    asked: Set[str] = frozenset()
    unanswered: Set[str] = frozenset()
    gone: dict[str, int] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)


class Presence:
    """Record of every client that was ever able to train in this run.

    Args:
        roster: Roster of the run.
        online: Query of the connected nodes; called only if a client did not answer.
        total: Privacy budget of the run in its account's unit; None without noise.
        clock: Seconds since 1970.
    """

    def __init__(
        self,
        roster: Roster,
        online: Callable[[], Iterable[int]],
        total: float | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._roster, self._online, self._total, self._clock = roster, online, total, clock
        self._nodes: dict[str, int] = {}
        self._seen: dict[str, float] = {}
        self._silent: dict[str, int] = {}
        self._spent = dict(roster.spent)
        self._traffic: dict[str, ClientTraffic] = defaultdict(ClientTraffic)

    def restore(self, event: RoundEvent) -> None:
        """Continue after a round of the run before it was resumed."""
        self._silent = dict(event.gone)
        self._seen |= {name: client.last_seen for name, client in event.clients.items() if client.last_seen}
        self._nodes |= dict.fromkeys(event.gone, 0)
        self._spent = dict(self._roster.spent)

    def record(self, exchange: Exchange) -> None:
        """Add a round trip, before clients with failures leave the roster."""
        self._nodes |= {c.name: c.node for c in self._roster.clients.values() if c.examples > 0}
        now = self._clock()
        for node, name in self._roster.names(exchange.asked).items():
            traffic = self._traffic[name]
            traffic.down += exchange.down_by_node.get(node, 0)
            traffic.up += exchange.up_by_node.get(node, 0)
            if node in exchange.durations:
                self._seen[name] = now
                traffic.seconds += exchange.durations[node] if exchange.kind == TRAIN else 0.0

    def attend(self, number: int, training: Exchange, rejected: Mapping[str, str]) -> Attendance:
        """Return the clients of a round after its last exchange.

        `rejected` names the clients whose reply does not count.
        """
        names = self._roster.names(training.asked)
        unanswered = {names[node] for node in training.missing}
        refused = self._refusals() | dict(rejected)
        states = self._states(training, unanswered, refused)
        asked = {*names.values()}
        absent = {name for name, state in states.items() if state in ("late", "missing")}
        self._silent = {name: self._silent.get(name, number) for name in absent}
        others = self._nodes.keys() - asked - rejected.keys()
        lost = {n: refused.get(n, "") for n in self._nodes if n in others and (n in absent or n in refused)}
        lost |= {name: refused[name] for name in unanswered & refused.keys()}
        chosen = select_clients(states, {name: traffic.seconds for name, traffic in self._traffic.items()})
        clients = {name: self._describe(name, states[name]) for name in chosen}
        gone = {name: since for name, since in sorted(self._silent.items()) if states[name] == "missing"}
        self._traffic, self._spent = defaultdict(ClientTraffic), dict(self._roster.spent)
        return Attendance(clients, dict(Counter(states.values())), asked, unanswered, gone, lost)

    def _refusals(self) -> dict[str, str]:
        """Return client or node -> reason, for nodes that refuse to take part."""
        refused = self._roster.refused
        names = self._roster.names(refused) | {node: name for name, node in self._nodes.items()} if refused else {}
        return {names[node]: why for node, why in refused.items()}

    def _states(self, training: Exchange, unanswered: Set[str], refused: Mapping[str, str]) -> dict[str, ClientState]:
        """Return the state of every client that took part in the run, is enrolled or refuses."""
        enrolled = {client.name: node for node, client in self._roster.clients.items()}
        heard = self._roster.present
        present = frozenset(self._online()) if training.missing else heard
        present &= heard.union(training.asked)  # connected nodes that send no heartbeats are not asked
        silent = unanswered | (self._nodes.keys() - enrolled.keys())
        states: dict[str, ClientState] = {}
        for name, node in (self._nodes | enrolled).items():
            states[name] = "missing" if node not in present else "late" if name in silent else "online"
        for name, why in refused.items():
            states[name] = "paused" if PAUSED_BY_OWNER in why else "revoked" if REVOKED in why else "refused"
        return states

    def _describe(self, name: str, state: ClientState) -> ClientRound:
        spent, traffic = self._roster.spent.get(name, 0.0), self._traffic.get(name, ClientTraffic())
        return ClientRound(
            state=state,
            seconds=round(traffic.seconds, 4),
            bytes_up=traffic.up,
            bytes_down=traffic.down,
            last_seen=round(self._seen.get(name, 0.0), 3),
            cost=max(spent - self._spent.get(name, 0.0), 0.0),
            left=None if self._total is None else max(self._total - spent, 0.0),
        )


def select_clients(states: Mapping[str, ClientState], seconds: Mapping[str, float]) -> list[str]:
    """Return all clients by name, or of more than `MAX_CLIENTS` the slowest and those that are not online."""
    if len(states) <= MAX_CLIENTS:
        return sorted(states)
    online = sorted(name for name, state in states.items() if state == "online")
    away = sorted(name for name, state in states.items() if state != "online")
    slowest = sorted(online, key=lambda name: -seconds.get(name, 0.0))[:SLOWEST]
    return sorted([*slowest, *away[: MAX_CLIENTS - SLOWEST]])
