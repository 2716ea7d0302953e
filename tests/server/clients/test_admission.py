"""Admission of hubs by the number of clients and by the name that belong to their key."""

from pathlib import Path

import pytest
from flwr.app import Error, Message

from common.errors import WireError
from common.node_names import NamedKey, default_name, read_names, write_names
from common.wire.codec import encode
from common.wire.hubs import join_answers
from common.wire.messages import ENROL, FAILED, EnrolReply
from server.clients.enrolment import HubAdmission
from server.clients.names import NameBindings
from server.exchange.relays import HubGrid
from tests.server.clients.test_node_directory import MARKS, NODES
from tests.server.fake_grid import Clock, FakeGrid
from tests.server.simulated_nodes import INVITATION


def admission(folder: Path | None) -> HubAdmission:
    return HubAdmission(HubGrid(FakeGrid(Clock(), [])), NameBindings(folder, lambda: NODES))


def hub(node: int, *names: str) -> Message:
    answers = {name: encode(EnrolReply(name, "toy:0", 3)) for name in names}
    return Message(join_answers(answers), reply_to=Message(encode(INVITATION), node, ENROL))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_names(tmp_path, {"ward": NamedKey(fingerprint=MARKS[1], clients=2)})
    return tmp_path


def test_a_registered_hub_brings_its_clients(folder: Path) -> None:
    hosted: dict[int, str] = {}
    admitted = admission(folder)
    replies = admitted.admit(hub(1, "ward/a", "ward/b"), hosted)
    assert sorted(hosted.values()) == ["ward/a", "ward/b"]
    assert [hosted[reply.metadata.src_node_id] for reply in replies] == ["ward/a", "ward/b"]
    assert admitted.grid is not None
    brought = [admitted.grid.hosted(node) for node in hosted]
    assert {client.name for client in brought if client} == {"ward/a", "ward/b"}


@pytest.mark.parametrize(
    ("node", "names", "reason"),
    [
        (1, ("ward/a", "ward/b", "ward/c"), "registered for 2 clients, and its hub brings 3; .*--clients 3"),
        (2, ("shop/a", "shop/b"), "registered for 1 client, and its hub brings 2"),
        (99, ("shop/a", "shop/b"), "registered for 1 client, and its hub brings 2"),
        (1, ("shop/a", "shop/b"), "this key is registered as 'ward'; join with --name ward"),
        (2, ("ward/a",), "the name 'ward' belongs to another key"),
    ],
    ids=["too many", "not registered", "no key", "another name", "the name of another key"],
)
def test_a_hub_beyond_its_registration_is_refused(node: int, names: tuple[str, ...], reason: str, folder: Path) -> None:
    hosted: dict[int, str] = {}
    with pytest.raises(WireError, match=reason):
        admission(folder).admit(hub(node, *names), hosted)
    assert hosted == {}


def test_the_name_of_a_hosted_client_has_two_parts() -> None:
    hosted: dict[int, str] = {}
    with pytest.raises(WireError, match="invalid client name 'north/ward/a' of a hub; use HUB/CLIENT"):
        admission(None).admit(hub(5, "north/ward/a"), hosted)
    assert not hosted


def test_the_name_of_a_hub_is_bound_to_its_key_at_its_first_enrolment(folder: Path) -> None:
    admission(folder).admit(hub(2, "shop/a"), {})
    assert read_names(folder)["shop"].fingerprint == MARKS[2]
    assert NameBindings(folder, lambda: NODES).resolve(1, f"{default_name(MARKS[1])}/a") == "ward/a"


def test_without_keys_a_hub_brings_any_number_and_a_server_may_take_none() -> None:
    hosted: dict[int, str] = {}
    admission(None).admit(hub(5, *(f"h/{k}" for k in range(1000))), hosted)
    assert len(hosted) == 1000
    with pytest.raises(WireError, match="takes no hubs"):
        HubAdmission().admit(hub(5, "h/0"), {})


def test_clients_of_a_hub_that_returns_get_new_nodes() -> None:
    again = admission(None)
    first, second = dict[int, str](), dict[int, str]()
    again.admit(hub(5, "h/0", "h/1"), first)
    again.admit(hub(6, "h/0", "h/1"), second)
    assert not first.keys() & second.keys()
    assert all(node < 0 for node in (*first, *second))


def test_a_refusal_of_one_client_is_that_of_its_node() -> None:
    reply = Message(
        join_answers({"h/0": Error(FAILED, "unfit"), "h/1": encode(EnrolReply("h/1", "toy:0", 3))}),
        reply_to=Message(encode(INVITATION), 5, ENROL),
    )
    refused, accepted = admission(None).admit(reply, {})
    assert refused.error.reason == "unfit"
    assert accepted.has_content()
