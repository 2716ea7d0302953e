"""Pinned helpers: rosters that a client accepts, and identities of first contacts."""

import stat
from pathlib import Path

import pytest

from client.owner.policy import SharingPolicy
from client.secure.terms import Pins
from common.errors import RefusedError, StateError, WireError
from common.secure.cards import NodeCard, make_card
from tests.support.helpers import card, exchange_key, node_keys, roster

OWNERS = {"works council": card(0).fingerprint, "auditor": card(1).fingerprint}


def pins_of(helpers: dict[str, str], fewest: int, path: Path | None = None, *, on_first_use: bool = False) -> Pins:
    policy = SharingPolicy(helpers=helpers, min_helpers=fewest, helpers_on_first_use=on_first_use)
    return Pins(policy, path)


def texts(*cards: NodeCard) -> list[str]:
    return [one.to_json() for one in cards]


def changed(number: int, name: str) -> NodeCard:
    """Return a card under a name with another identity."""
    return make_card(name, "toy", node_keys(9)[8], exchange_key(number).public_key())


def test_a_roster_of_pinned_helpers_is_accepted() -> None:
    found = pins_of(OWNERS, 2).accept(roster(3).to_json(), "toy")
    assert found.roster == roster(3)
    assert found.pinned == ("helper-0", "helper-1")
    assert found.first_use == ()


@pytest.mark.parametrize("owners", [{}, {"auditor": card(1).fingerprint}, {"other": card(7).fingerprint}])
def test_a_roster_with_too_few_pins_is_refused_and_names_the_helpers(owners: dict[str, str]) -> None:
    with pytest.raises(RefusedError, match=r"requires 2 \(min-helpers\); .*helper-0, helper-1"):
        pins_of(owners, 2).accept(roster().to_json(), "toy")


def test_an_owner_may_rely_on_one_helper_alone() -> None:
    found = pins_of({"own": card(1).fingerprint}, 1).accept(roster().to_json(), "toy")
    assert found.pinned == ("helper-1",)


def test_a_swapped_card_is_refused() -> None:
    """The server shows its own key under the name of a pinned helper."""
    swapped = texts(changed(0, "helper-0"), card(1))
    with pytest.raises(RefusedError, match="1 helper of this run are pinned"):
        pins_of(OWNERS, 2).accept(swapped, "toy")
    with pytest.raises(RefusedError, match="helper 'helper-0' has another key than before"):
        pins_of({"helper-0": card(0).fingerprint, "b": card(1).fingerprint}, 1).accept(swapped, "toy")


def test_a_roster_of_another_run_or_with_a_bad_signature_is_malformed() -> None:
    with pytest.raises(WireError, match="another run"):
        pins_of(OWNERS, 2).accept(roster(run="other").to_json(), "toy")
    first, second = roster().to_json()
    with pytest.raises(WireError, match="signature"):
        pins_of(OWNERS, 2).accept([first, second.replace('"serves":"only"', '"serves":"also"')], "toy")


@pytest.mark.parametrize("folder", [True, False])
def test_identities_of_the_first_contact_are_pinned_from_then_on(tmp_path: Path, folder: bool) -> None:
    path = tmp_path / "name" / "helpers.json" if folder else None
    pins = pins_of({}, 2, on_first_use=True, path=path)
    assert pins.accept(roster().to_json(), "toy").first_use == ("helper-0", "helper-1")
    if path:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        pins = pins_of({}, 2, path=path)  # the owner may end first use later
    assert pins.accept(roster().to_json(), "toy").pinned == ("helper-0", "helper-1")
    with pytest.raises(RefusedError, match="helper 'helper-1' has another key than before"):
        pins.accept(texts(card(0), changed(1, "helper-1")), "toy")


def test_a_refused_roster_pins_nothing(tmp_path: Path) -> None:
    pins = pins_of({}, 3, on_first_use=True, path=tmp_path / "helpers.json")
    with pytest.raises(RefusedError, match="2 helpers"):
        pins.accept(roster().to_json(), "toy")
    assert not (tmp_path / "helpers.json").exists()


def test_pins_of_the_owner_are_no_first_use() -> None:
    found = pins_of({"a": card(0).fingerprint}, 2, on_first_use=True).accept(roster().to_json(), "toy")
    assert (found.pinned, found.first_use) == (("helper-0", "helper-1"), ("helper-1",))


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff"])
def test_a_damaged_file_is_a_typed_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "helpers.json").write_bytes(content)
    with pytest.raises(StateError, match=r"helpers\.json cannot be read"):
        pins_of({}, 2, on_first_use=True, path=tmp_path / "helpers.json").accept(roster().to_json(), "toy")
