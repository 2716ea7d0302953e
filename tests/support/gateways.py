"""Gateways in one process, over the hubs and the client of `tests.support.hubs`."""

from collections.abc import Mapping
from pathlib import Path

from client.hub import Hub
from client.state import MemoryStore
from deploy.gateway import Gateway
from tests.support.hubs import Node, NodeGrid, nodes_of
from tests.support.owners import Owners

NAME = "west"


def respondents(nodes: Mapping[int, Hub | Node]) -> dict[int, Node]:
    return {number: one.respond if isinstance(one, Hub) else one for number, one in nodes.items()}


def gateway(
    nodes: Mapping[int, Node],
    clients: int = 5,
    name: str = NAME,
    store: MemoryStore | None = None,
    keys: Path | None = None,
) -> Gateway:
    return Gateway(name, NodeGrid(nodes), clients, store or MemoryStore(), keys)


def gateway_of(people: Owners, together: int = 1, clients: int = 5, name: str = NAME) -> Gateway:
    """Return a gateway over two hubs and a client by itself."""
    return gateway(respondents(nodes_of(people, together)), clients, name)


def behind(one: Gateway) -> NodeGrid:
    """Return the server's grid, whose one node is the gateway."""
    return NodeGrid({4: one.respond})
