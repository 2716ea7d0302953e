"""Cards of helpers: signatures, refusals, rosters."""

import base64
import json
from collections.abc import Callable
from dataclasses import asdict, replace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from common import node_names as node_keys
from common.errors import WireError
from common.secure.cards import HelperRoster, NodeCard, make_card
from common.secure.terms import canonical
from tests.support.helpers import card, exchange_key, roster
from tests.support.helpers import node_keys as keys


def test_parsing_inverts_the_text_and_the_signature_holds() -> None:
    assert NodeCard.from_json(card().to_json()) == card()
    assert card().fingerprint == node_keys.fingerprint(keys(1)[0].public_key())
    assert card().raw_key == exchange_key(0).public_key().public_bytes_raw()


def other_curve() -> str:
    key = ec.derive_private_key(5, ec.SECP256R1())
    return make_card("helper-0", "toy", key, exchange_key(0).public_key()).to_json()


BAD: dict[str, Callable[[], str]] = {
    "no JSON": lambda: "card",
    "no object": lambda: "[]",
    "missing field": lambda: json.dumps({"name": "a"}),
    "number": lambda: canonical({**asdict(card()), "name": 3}).decode(),
    "not canonical": lambda: json.dumps(asdict(card())),
    "other name": lambda: replace(card(), name="helper-9").to_json(),
    "other run": lambda: replace(card(), run="other").to_json(),
    "other key": lambda: replace(card(), key=card(1).key).to_json(),
    "other identity": lambda: replace(card(), identity=card(1).identity).to_json(),
    "other service": lambda: replace(card(), serves="also").to_json(),
    "no signature": lambda: replace(card(), signature="").to_json(),
    "signature of another": lambda: replace(card(), signature=card(1).signature).to_json(),
    "signature without base64": lambda: replace(card(), signature="é").to_json(),
    "other curve": other_curve,
    "identity of nothing": lambda: replace(card(), identity="AAAA").sign(keys(1)[0]).to_json(),
    "short key": lambda: replace(card(), key="AAAA").sign(keys(1)[0]).to_json(),
    "low-order key": lambda: replace(card(), key=base64.b64encode(bytes(32)).decode()).sign(keys(1)[0]).to_json(),
    "empty name": lambda: replace(card(), name="").sign(keys(1)[0]).to_json(),
    "name of two rows": lambda: replace(card(), name="a\nb").sign(keys(1)[0]).to_json(),
    "unknown service": lambda: replace(card(), serves="x").sign(keys(1)[0]).to_json(),  # type: ignore[arg-type]  # bad on purpose
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_card_is_a_wire_error(case: str) -> None:
    with pytest.raises(WireError, match="node card"):
        NodeCard.from_json(BAD[case]())


def test_a_roster_has_its_cards_and_a_digest_that_covers_them() -> None:
    first = roster()
    assert HelperRoster.read(first.to_json(), "toy") == first
    assert first.names == ("helper-0", "helper-1")
    assert len({first.digest, roster(3).digest, roster(run="other").digest}) == 3


@pytest.mark.parametrize(
    ("cards", "run", "reason"),
    [
        ([], "toy", "0 helpers"),
        ([card(0)], "toy", "1 helpers"),
        ([card(n) for n in range(6)], "toy", "6 helpers"),
        ([card(0), card(1, "other")], "toy", "another run"),
        ([card(0), card(1)], "other", "another run"),
        ([card(1), card(0)], "toy", "ascending"),
        ([card(0), card(0)], "toy", "ascending"),
        ([card(0), card(1, name="helper-0")], "toy", "ascending"),
        ([card(0), card(0, name="helper-1")], "toy", "same key"),
        ([card(0), make_card("helper-1", "toy", keys(2)[1], exchange_key(0).public_key())], "toy", "same key"),
        ([card(0), make_card("helper-1", "toy", keys(1)[0], exchange_key(1).public_key())], "toy", "same key"),
    ],
)
def test_a_bad_roster_is_refused(cards: list[NodeCard], run: str, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        HelperRoster.read([one.to_json() for one in cards], run)
