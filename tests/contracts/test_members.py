"""Members of secure sums under a server that invents them, changes them, or forges their keys."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from flwr.app import Message

from client.checks import open_node_key
from client.privacy.transforms import Update
from client.secure.members import Party, known_members
from client.secure.terms import ExpectedSum
from client.secure.upload import Blocks
from common.errors import FedloomError, RefusedError, StateError, WireError
from common.node_names import fresh_node_key
from common.secure.cards import make_card
from common.secure.members import MemberKey, MemberList, read_lines, read_members, simulated_key
from common.wire.codec import decode
from common.wire.messages import MEMBERS, TRAIN, MembersRequest, PrepareRequest, TrainRequest
from server.secure.store import SUMS, SumStore
from tests.support.desks import CLIENTS, LINES, Helpers, Upload, open_sum, prepare
from tests.support.helpers import EXACT, card, cards_of, members, node_keys, roster, terms
from tests.support.mutations import TIMES, mutated
from tests.support.sum_runs import SumFederation, summed
from tests.support.summing import CHECK, Summing

INVENTED = [f"zoe-{n}" for n in range(4)]
KEY = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()


def show(server: Summing, cards: list[str], start: int = 0) -> int:
    """Show a client cards as those of further members; return how many it knows."""
    return server.first.members(MembersRequest(server.enrolled[0].enrolment, start, cards, CHECK)).number


def test_a_helper_opens_no_sum_of_invented_clients() -> None:
    room = Helpers()
    about = room.terms(min_sum=5)
    uploads = [Upload(name, np.arange(6), about, room.roster) for name in ("client-000", *INVENTED)]
    assert prepare(room.desks[0], about, uploads).bad == INVENTED
    with pytest.raises(RefusedError, match="not prepared"):
        open_sum(room.desks[0], about, uploads)
    with pytest.raises(RefusedError, match="terms require 5"):
        open_sum(room.desks[0], about, uploads[:1])


def test_a_seed_that_a_member_did_not_sign_is_bad() -> None:
    room = Helpers()
    about = room.terms()
    uploads = room.upload(about, [np.arange(6)] * 3)
    uploads[1].sealed = Upload("client-001", np.arange(6), about, room.roster, signer="client-002").sealed
    assert prepare(room.desks[0], about, uploads).bad == ["client-001"]


def test_members_other_than_those_of_the_terms_are_refused() -> None:
    room = Helpers()
    about = room.terms()
    names = [*CLIENTS, *INVENTED]
    lines = [one.line for one in members(*names).members]
    with pytest.raises(RefusedError, match="members are not those of its terms"):
        room.desks[0].prepare(PrepareRequest(about.to_json(), ["client-000"], [""], lines, [""]))


def test_who_invents_members_must_show_their_keys() -> None:
    server = Summing(summed())
    assert show(server, cards_of(*INVENTED), len(CLIENTS)) == len(CLIENTS) + 4
    shown = known_members(server.first.store, "toy").members[-4:]
    assert [one.name for one in shown] == INVENTED
    assert [one.identity for one in shown] == [one.identity for one in members(*INVENTED).members]


def test_a_client_joins_sums_of_enough_owners_alone() -> None:
    shown, ours = members("a@ann", "b@ann", "c@bob", "d"), roster()
    assert shown.owners == (0, 1, 1, 2, 3)
    party = Party("a@ann", simulated_key("a@ann"), shown)
    expected = ExpectedSum("toy", 1, "train", ours, 3, {"update": np.zeros(6)}, party)
    for number, digest in enumerate(shown.digests):
        about = terms(**EXACT, roster=ours.digest, min_sum=3, members=digest)
        if number == 4:
            assert expected.accept(about.to_json()) == about
            continue
        with pytest.raises(RefusedError, match="members is not what this client requires"):
            expected.accept(about.to_json())


def test_a_client_in_whose_name_another_key_stands_joins_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Summing(summed())
    monkeypatch.setattr(server.first, "_member_key", lambda: MemberKey(fresh_node_key()))
    template = Blocks(server.config, 1).of(Update({f"update/{n}": a for n, a in server.model.items()})).arrays
    with pytest.raises(RefusedError, match="members is not what this client requires"):
        server.first.train(server.request(server.terms(template)))


FORGED: dict[str, tuple[Callable[[], str], type[FedloomError], str]] = {
    "another key of a name": (
        lambda: make_card("client-000", "toy", node_keys(1)[0], KEY, "trains").to_json(),
        RefusedError,
        "another key than before",
    ),
    "the key of another name": (lambda: simulated_key("client-000").card("zoe", "toy"), RefusedError, "key of another"),
    "another run": (lambda: simulated_key("zoe").card("zoe", "other"), WireError, "another run"),
    "a helper": (lambda: card(0).to_json(), WireError, "a helper's"),
    "an identity that signed nothing": (
        lambda: simulated_key("zoe").card("zoe", "toy").replace("zoe", "ann"),
        WireError,
        "signature of 'ann' is invalid",
    ),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_card_is_refused_and_changes_nothing(case: str) -> None:
    make, kind, reason = FORGED[case]
    server = Summing(summed())
    before = known_members(server.first.store, "toy")
    with pytest.raises(kind, match=reason):
        show(server, [*cards_of("zoe-0"), make()], len(CLIENTS))
    assert known_members(server.first.store, "toy") == before


def test_a_list_in_another_order_is_refused_and_one_from_beyond_is_asked_again() -> None:
    server = Summing(summed())
    with pytest.raises(RefusedError, match="shown before"):
        show(server, cards_of(*reversed(CLIENTS)))
    assert show(server, cards_of("zoe-1"), len(CLIENTS) + 1) == len(CLIENTS)
    assert show(server, cards_of(*CLIENTS[5:], "zoe-1"), 5) == len(CLIENTS) + 1


def test_a_list_covers_what_it_was() -> None:
    whole = members(*CLIENTS)
    assert whole.at(whole.digests[3]) == MemberList(whole.members[:3])
    with pytest.raises(RefusedError, match="not those that are known"):
        whole.at("0" * 64)
    assert read_lines(LINES) == whole
    assert MemberList(whole.members[::-1]).digest != whole.digest


def test_mutated_cards_and_lines_are_typed_errors() -> None:
    chance, cards = random.Random(3), cards_of("ann", "bob")
    for _ in range(2_000 * TIMES):
        changed, lines = mutated(chance, cards), mutated(chance, LINES[:3])
        for read, text in ((lambda text: read_members(text, "toy"), changed), (read_lines, lines)):
            try:
                read(text)
            except FedloomError:
                continue


def test_a_client_that_comes_later_is_shown_to_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    federation, asked, shown = SumFederation(tmp_path, clients=4), set[int](), list[tuple[int, int]]()
    grid, everybody = federation.grid, federation.grid.get_node_ids()

    def look(message: Message) -> None:
        if message.metadata.message_type == TRAIN:
            asked.add(decode(TrainRequest, message.content).round)
        if message.metadata.message_type == MEMBERS:
            request = decode(MembersRequest, message.content)
            shown.append((request.start, len(request.cards)))

    grid.before = look
    monkeypatch.setattr(grid, "get_node_ids", lambda: [node for node in everybody if node != 4 or asked])
    assert federation.run(summed()).status == "completed"
    assert [one.clients for one in federation.sums()] == [3, 4, 4]
    assert sorted(shown) == [(0, 3)] * 3 + [(0, 4)] + [(3, 1)] * 3


def test_a_resumed_run_goes_on_with_its_members(tmp_path: Path) -> None:
    federation, stored = SumFederation(tmp_path, clients=4), SumStore(tmp_path / "toy" / SUMS, "toy")

    def stop(message: Message) -> None:
        if message.metadata.message_type == TRAIN and decode(TrainRequest, message.content).round == 2:
            raise InterruptedError

    federation.grid.before = stop
    with pytest.raises(InterruptedError):
        federation.run(summed())
    cards = stored.members()
    assert [one.name for one in read_members(cards, "toy")] == [f"client-{k}" for k in range(4)]
    federation.connect()
    assert federation.run(summed(), resume=True).status == "completed"
    assert stored.members() == cards
    (tmp_path / "toy" / SUMS / "members.json").write_text("[1")
    with pytest.raises(StateError, match=r"members\.json is damaged"):
        stored.members()


@pytest.mark.parametrize("content", [b"", b"no key", b"-----BEGIN OPENSSH PRIVATE KEY-----\n"])
def test_a_damaged_key_of_a_member_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "node.key").write_bytes(content)
    with pytest.raises(StateError, match=r"node\.key"):
        open_node_key(None, tmp_path)


def test_a_client_without_a_key_keeps_the_one_it_has_made(tmp_path: Path) -> None:
    first, again = (MemberKey(open_node_key(None, tmp_path / "state")).member("ann", "toy") for _ in range(2))
    assert first == again
    assert (tmp_path / "state" / "node.key").stat().st_mode & 0o777 == 0o600
    assert MemberKey(open_node_key(None, tmp_path / "other")).member("ann", "toy") != first
