"""Heads of privacy ledgers at the server: a ledger that lost releases is refused."""

from pathlib import Path

import pytest

from common.errors import ConfigError, WireError
from common.node_names import NamedKey, write_names
from deploy.keys.nodes import accept_ledger
from server.clients.ledger_heads import FILE, LedgerHeads, StoredHead, read_heads

KEYS = {1: "SHA256:" + 43 * "A", 2: "SHA256:" + 43 * "B", 3: "", 4: "SHA256:" + 43 * "A" + "#ward/a"}


@pytest.fixture
def heads(tmp_path: Path) -> LedgerHeads:
    heads = LedgerHeads(tmp_path, "rules", KEYS.__getitem__)
    heads.check(1, "aaaa:5:five")
    return heads


@pytest.mark.parametrize("head", ["aaaa:5:five", "aaaa:6:six", "aaaa:1000:more", ""])
def test_a_ledger_that_grew_is_accepted(heads: LedgerHeads, head: str) -> None:
    heads.check(1, head)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("aaaa:4:four", r"ledger aaaa has 4 rows and had 5; it is an older copy; .*fedloom nodes accept-ledger"),
        ("aaaa:0:", "has 0 rows and had 5"),
        ("aaaa:5:other", "row 5 of the privacy ledger aaaa was altered"),
        ("bbbb:0:", "ledger bbbb is new, and this key had ledger aaaa with 5 rows: its data could be spent twice"),
        ("bbbb:9:nine", "ledger bbbb is new"),
    ],
    ids=["last row deleted", "emptied", "altered", "fresh state", "fresh state that grew"],
)
def test_a_ledger_that_went_backwards_is_refused_and_both_are_named(
    heads: LedgerHeads, head: str, reason: str, tmp_path: Path
) -> None:
    for _ in range(2):
        with pytest.raises(WireError, match=reason):
            heads.check(1, head)
    assert read_heads(tmp_path) == {KEYS[1]: {"aaaa": StoredHead("rules", 5, "five")}}


@pytest.mark.parametrize("head", ["", "x", "::", "a:b:c", "../x:1:y", "a:-1:y", "a:1:" + 200 * "y", "a:¹:y"])
def test_a_malformed_head_is_refused(heads: LedgerHeads, head: str, tmp_path: Path) -> None:
    before = (tmp_path / FILE).read_bytes()
    if head:
        with pytest.raises(WireError, match="is not a head of a privacy ledger"):
            heads.check(1, head)
    assert (tmp_path / FILE).read_bytes() == before


def test_keys_and_tasks_have_ledgers_of_their_own(heads: LedgerHeads, tmp_path: Path) -> None:
    heads.check(2, "bbbb:2:two")
    LedgerHeads(tmp_path, "ratings", KEYS.__getitem__).check(1, "cccc:1:one")
    heads.check(3, "a node without a key")
    assert {key: set(of) for key, of in read_heads(tmp_path).items()} == {KEYS[1]: {"aaaa", "cccc"}, KEYS[2]: {"bbbb"}}


def test_a_damaged_file_refuses_clients_and_does_not_end_the_run(heads: LedgerHeads, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
    with pytest.raises(WireError, match="the server cannot read its heads of ledgers"):
        heads.check(1, "aaaa:6:six")


def test_the_server_s_owner_accepts_a_new_ledger(heads: LedgerHeads, tmp_path: Path) -> None:
    write_names(tmp_path, {"home-7": NamedKey(fingerprint=KEYS[1])})
    with pytest.raises(ConfigError, match="no key has the name 'home-8'"):
        accept_ledger(tmp_path, "home-8")
    assert accept_ledger(tmp_path, "home-7") == KEYS[1]
    heads.check(1, "bbbb:0:")


def test_each_client_of_a_hub_has_a_ledger_of_its_own(heads: LedgerHeads, tmp_path: Path) -> None:
    heads.check(4, "bbbb:2:two")
    with pytest.raises(WireError, match="ledger cccc is new"):
        heads.check(4, "cccc:0:")
    write_names(tmp_path, {"ward": NamedKey(fingerprint=KEYS[1])})
    accept_ledger(tmp_path, "ward")
    assert read_heads(tmp_path) == {}


def test_heads_of_replies_are_stored_together(heads: LedgerHeads, tmp_path: Path) -> None:
    heads.check(2, "bbbb:0:")
    for _ in range(2):  # a reply that is sent again has the same head
        heads.note(1, "aaaa:6:six")
    heads.note(2, "bbbb:3:three")
    heads.note(3, "a node without a key")
    assert read_heads(tmp_path)[KEYS[1]]["aaaa"].sequence == 5
    heads.store()
    assert [head for of in read_heads(tmp_path).values() for head in of.values()] == [
        StoredHead("rules", 6, "six"),
        StoredHead("rules", 3, "three"),
    ]


def test_a_head_that_another_run_stored_is_not_replaced_by_an_older_one(heads: LedgerHeads, tmp_path: Path) -> None:
    heads.note(1, "aaaa:6:six")
    LedgerHeads(tmp_path, "rules", KEYS.__getitem__).check(1, "aaaa:7:seven")
    heads.store()
    assert read_heads(tmp_path) == {KEYS[1]: {"aaaa": StoredHead("rules", 7, "seven")}}


def test_a_reply_needs_the_ledger_of_its_enrolment(heads: LedgerHeads) -> None:
    with pytest.raises(WireError, match="reported no privacy ledger when it enrolled"):
        heads.note(2, "bbbb:3:three")


def test_heads_that_cannot_be_stored_end_the_round(heads: LedgerHeads, tmp_path: Path) -> None:
    heads.note(1, "aaaa:6:six")
    (tmp_path / FILE).write_text("{")
    with pytest.raises(ConfigError, match=r"ledgers.json cannot be read \(ValidationError\); restore it from a backup"):
        heads.store()
