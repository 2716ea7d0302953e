"""Keys that the server's owner revokes while a run trains: their clients are out in the next round, and named."""

from pathlib import Path

from flwr.app import Message
from flwr.serverapp import Grid

from client.hub.hub import Hub
from common.node_names import NamedKey, write_names
from common.wire.messages import TRAIN
from deploy.keys.nodes import add_key, revoke_key
from deploy.pages.terminal import round_line
from server.clients.roster import REVOKED
from server.exchange.relays import HostedClient
from server.record.events import Refusal, RoundEvent
from server.record.folder import RunDirectory
from server.run import run
from tests.server.clients.test_node_directory import KEYS, MARKS, NODES
from tests.support.hubs import Node, NodeGrid, direct, nodes_of, settings
from tests.support.owners import owners
from tests.support.sensors import rounds_of


def train(grid: Grid, folder: Path, revoked: str) -> list[RoundEvent]:
    """Run three rounds of two replies at least; revoke a key after the first one."""
    config = settings(folder, federation__min_replies=2)

    def on_round(number: int) -> None:
        if number == 1:
            revoke_key(folder / "nodes", revoked)

    run(grid, config, folder / "runs", folder / "nodes", lambda state: on_round(state.round))
    return rounds_of(folder / "runs")


def test_a_revoked_client_is_named_and_not_asked_again(tmp_path: Path) -> None:
    add_key(tmp_path / "nodes", KEYS[1], "client-0")
    people, asked = owners(5), list[int]()

    def counted(message: Message) -> Message | None:
        asked.append(1)
        return direct(people.sessions[1])(message)

    nodes: dict[int, Node] = {node: direct(session) for node, session in people.sessions.items()}
    grid = NodeGrid({**nodes, 1: counted}, [HostedClient(1, 0, "", NODES[0].public_key)])
    first, second, third = train(grid, tmp_path, "client-0")
    assert (first.answered, first.asked, first.refused) == (5, 5, {})
    for later in (second, third):
        assert (later.answered, later.asked, later.missing, later.gone) == (4, 5, [], {})
        assert list(later.refused) == ["client-0"]
        assert (later.clients["client-0"].state, later.states) == ("revoked", {"online": 4, "revoked": 1})
        assert "4/5 clients (client-0: revoked)" in round_line(later).plain
    assert len([m for m in grid.pushed if m.metadata.message_type == TRAIN and m.metadata.dst_node_id == 1]) == 1
    [refusal] = [one for one in RunDirectory(tmp_path / "runs", "toy").events() if isinstance(one, Refusal)]
    assert refusal.client == "client-0"
    assert REVOKED in refusal.reason


def test_with_the_key_of_a_hub_all_its_clients_are_revoked(tmp_path: Path) -> None:
    add_key(tmp_path / "nodes", KEYS[1], "a", 2)
    nodes = nodes_of(owners(5))
    flat: dict[int, Node] = {k: each.respond if isinstance(each, Hub) else each for k, each in nodes.items()}
    described = [HostedClient(8, 0, "", NODES[0].public_key), HostedClient(9, 0, "", NODES[1].public_key)]
    grid = NodeGrid(flat, described)
    write_names(
        tmp_path / "nodes", {hub: NamedKey(fingerprint=MARKS[key], clients=2) for hub, key in (("a", 1), ("b", 2))}
    )
    first, second, _ = train(grid, tmp_path, "a")
    assert first.answered == 5
    assert (second.answered, second.asked) == (3, 5)
    assert {name: second.clients[name].state for name in ("a/client-0", "a/client-3")} == {
        "a/client-0": "revoked",
        "a/client-3": "revoked",
    }
    assert list(second.refused) == ["a/client-0", "a/client-3"]


def test_a_client_with_a_new_key_takes_the_place_of_its_revoked_one(tmp_path: Path) -> None:
    add_key(tmp_path / "nodes", KEYS[1], "client-0")
    people = owners(5)
    nodes: dict[int, Node] = {node: direct(session) for node, session in people.sessions.items()}
    late: dict[int, Node] = {}
    described = [HostedClient(node, 0, "", NODES[key - 1].public_key) for node, key in ((1, 1), (7, 2))]

    class Growing(NodeGrid):
        def get_node_ids(self) -> list[int]:
            return [node for node in super().get_node_ids() if node != 7 or late]

    def on_round(number: int) -> None:
        if number == 1:
            revoke_key(tmp_path / "nodes", "client-0")
        if number == 2:
            late[7] = nodes[1]

    grid = Growing({**nodes, 7: nodes[1]}, described)
    run(
        grid,
        settings(tmp_path, federation__min_replies=2),
        tmp_path / "runs",
        tmp_path / "nodes",
        lambda state: on_round(state.round),
    )
    _, second, third = rounds_of(tmp_path / "runs")
    assert second.clients["client-0"].state == "revoked"
    assert (third.answered, third.asked, third.refused) == (5, 5, {})
    assert third.states == {"online": 5}
