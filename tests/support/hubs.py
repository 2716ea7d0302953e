"""Hubs and single clients as nodes of one process."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from flwr.app import Message, RecordDict

from client.app import respond
from client.hub.hub import Hub
from client.hub.state import FOLDER, HostedStore, StateBlocks
from client.session import Session
from client.state import Store
from common.config.run import RunConfig
from common.options import Scalar
from common.wire.hubs import Answer, is_from_hub, join_answers, split_answers
from deploy.federation.hub import train_in_copies
from deploy.simulation.grid import InProcessGrid
from server.exchange.relays import HostedClient
from server.run import run
from studies.lies.liars import Lie
from tests.support.owners import SHARING, Owners, owners, quick
from tests.support.toy_sessions import toy_sessions

HUBS = {"a": [1, 4], "b": [2, 5]}
"""Hub -> its clients by their numbers."""

Node = Callable[[Message], Message | None]


class NodeGrid(InProcessGrid):
    """Grid whose nodes are functions that answer messages; none of them may be asked for another node's client.

    Args:
        nodes: Node -> its function.
        described: Description of each node that has a key.
    """

    def __init__(self, nodes: Mapping[int, Node], described: Sequence[HostedClient] = ()) -> None:
        super().__init__({}, 1)
        self._nodes, self._described, self._numbers = nodes, described, count(1)
        self.pushed: list[Message] = []

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        messages = list(messages)
        for message in messages:
            message.metadata.__dict__["_message_id"] = f"m{next(self._numbers)}"
            self.pushed.append(message)
            if (reply := self._nodes[message.metadata.dst_node_id](message)) is not None:
                self._replies[message.metadata.message_id] = reply
        return [message.metadata.message_id for message in messages]

    def get_node_ids(self) -> list[int]:
        return [*self._nodes]

    def get_nodes(self) -> Sequence[HostedClient]:
        return self._described


def direct(session: Session) -> Node:
    return lambda message: respond(session, message)


def settings(folder: Path, method: str = "fedrule", **options: Scalar) -> RunConfig:
    """Return the configuration of a quick run of five clients; its vocabulary is written to `folder`."""
    return quick(folder, method, **{"rounds": 3, "federation__min_clients": 5, **options})


def with_names(people: Owners) -> dict[int, Session]:
    """Return the clients with the names that they have at the hubs of `nodes_of`."""
    for hub, members in HUBS.items():
        for node in members:
            people.sessions[node].client = f"{hub}/client-{node - 1}"
    return people.sessions


def nodes_of(people: Owners, together: int = 1) -> dict[int, Hub | Node]:
    """Return five clients on three nodes: hub 8, hub 9, and the third client by itself."""
    sessions = with_names(people)
    hubs = [Hub({sessions[node].client: sessions[node] for node in members}, together) for members in HUBS.values()]
    return {3: direct(sessions[3]), **dict(enumerate(hubs, start=8))}


def split(people: Owners) -> tuple[Hub, dict[int, Node]]:
    """Return a hub that trains stacked, and the other nodes."""
    nodes = nodes_of(people, together=2)
    hub = nodes.pop(8)
    assert isinstance(hub, Hub)
    return hub, {node: one.respond if isinstance(one, Hub) else one for node, one in nodes.items()}


def lying(hub: Hub, kind: str, lie: Lie) -> Node:
    """Return a node whose hub changes its reply to requests of a kind."""
    return lambda message: lie(hub.respond(message)) if message.metadata.message_type == kind else hub.respond(message)


def with_answers(change: Callable[[dict[str, Answer]], dict[str, Answer]]) -> Lie:
    """Return the lie that changes the answers in a hub's reply."""
    return lambda reply: _with_content(reply, join_answers(change(split_answers(reply.content))))


def _with_content(reply: Message, content: RecordDict) -> Message:
    assert is_from_hub(reply.content)
    reply.content = content
    return reply


def of_hub(folder: Path, method: str, allowed: Mapping[str, Any], **options: Scalar) -> Path:
    """Run with a hub among five clients, and return the folder of runs."""
    hub, others = split(owners(5, SHARING.model_copy(update=allowed)))
    folder.mkdir()
    result = run(NodeGrid({**others, 8: hub.respond}), settings(folder, method, **options), folder)
    assert result.status == "completed"
    return folder


def on_disk(folder: Path, together: int, clients: int, workers: int = 1) -> Hub:
    """Return a hub whose clients' states are on disk."""
    blocks = StateBlocks(folder / "state" / FOLDER / "a")
    stores: list[Store] = [HostedStore(folder / "state" / f"c{k}" / "data", blocks) for k in range(clients)]
    sessions = toy_sessions(stores)
    for k, session in enumerate(sessions.values()):
        session.client = f"a/client-{k}"
    named = {session.client: session for session in sessions.values()}
    return Hub(named, together, workers=partial(train_in_copies, workers) if workers > 1 else None)
