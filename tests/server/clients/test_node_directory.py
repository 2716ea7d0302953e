"""Names of nodes, by keys that the SuperLink has verified."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from common.errors import WireError
from common.node_names import NamedKey, default_name, file_name, fingerprint, read_names, write_names
from server.clients.names import NameBindings


@dataclass
class Node:
    node_id: int
    public_key: bytes = b""


KEYS = {node: ec.generate_private_key(ec.SECP384R1()).public_key() for node in (1, 2)}
MARKS = {node: fingerprint(key) for node, key in KEYS.items()}
NODES = [
    Node(node, key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    for node, key in KEYS.items()
]


@pytest.fixture
def bindings(tmp_path: Path) -> NameBindings:
    write_names(tmp_path, {"shop-3": NamedKey(fingerprint=MARKS[1])})
    return NameBindings(tmp_path, lambda: [*NODES, Node(3)])


@pytest.mark.parametrize("claimed", ["shop-3", default_name(MARKS[1])], ids=["bound", "default"])
def test_a_client_is_enrolled_under_the_name_of_its_key(bindings: NameBindings, claimed: str) -> None:
    assert bindings.resolve(1, claimed) == "shop-3"


def test_a_client_that_calls_itself_something_else_is_refused(bindings: NameBindings) -> None:
    with pytest.raises(WireError, match="this key is registered as 'shop-3'; join with --name shop-3"):
        bindings.resolve(1, "shop-4")


@pytest.mark.parametrize("node", [2, 3, 99])
def test_the_name_of_another_key_is_refused(bindings: NameBindings, node: int) -> None:
    with pytest.raises(WireError, match="the name 'shop-3' belongs to another key"):
        bindings.resolve(node, "shop-3")


def test_the_first_name_that_a_key_chooses_belongs_to_it(bindings: NameBindings, tmp_path: Path) -> None:
    assert bindings.resolve(2, default_name(MARKS[2])) == default_name(MARKS[2])
    assert bindings.resolve(2, "shop-4") == "shop-4"
    assert read_names(tmp_path)["shop-4"].fingerprint == MARKS[2]
    with pytest.raises(WireError, match="the name 'shop-4' belongs to another key"):
        bindings.resolve(3, "shop-4")
    with pytest.raises(WireError, match="this key is registered as 'shop-4'"):
        NameBindings(tmp_path, lambda: NODES).resolve(2, "shop-5")


def test_a_node_without_a_key_chooses_any_free_name(bindings: NameBindings, tmp_path: Path) -> None:
    assert bindings.resolve(3, "guest") == "guest"
    assert list(read_names(tmp_path)) == ["shop-3"]


def test_names_are_not_bound_in_a_folder_that_cannot_be_written(
    bindings: NameBindings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(folder: Path, names: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr("server.clients.names.write_names", fail)
    assert bindings.resolve(2, "shop-4") == "shop-4"
    assert "the name 'shop-4' is not bound to its key: read-only" in caplog.text


def test_a_name_that_is_bound_during_a_run_holds_from_the_next_enrolment_on(
    bindings: NameBindings, tmp_path: Path
) -> None:
    write_names(tmp_path, {"shop-4": NamedKey(fingerprint=MARKS[2])})
    assert bindings.resolve(2, default_name(MARKS[2])) == "shop-4"
    assert bindings.resolve(1, "shop-3") == "shop-3"


def test_a_revoked_key_is_refused_whatever_its_name(bindings: NameBindings, tmp_path: Path) -> None:
    (tmp_path / "revoked").mkdir()
    (tmp_path / "revoked" / f"{file_name(MARKS[2])}.pub").touch()
    with pytest.raises(WireError, match="has revoked this key"):
        bindings.resolve(2, "shop-4")


def test_a_damaged_file_of_names_refuses_without_its_content(bindings: NameBindings, tmp_path: Path) -> None:
    (tmp_path / "names.toml").write_text("secret = ")
    with pytest.raises(WireError, match="cannot read its names") as refused:
        bindings.resolve(1, "shop-3")
    assert str(tmp_path) not in str(refused.value)


def test_without_a_folder_names_are_free() -> None:
    assert NameBindings().resolve(1, "anything") == "anything"


def test_a_node_is_named_by_the_name_of_its_key(bindings: NameBindings, tmp_path: Path) -> None:
    assert [bindings.bound(node) for node in (1, 2, 3)] == ["shop-3", "", ""]
    assert NameBindings(None, lambda: NODES).bound(1) == ""
    (tmp_path / "names.toml").write_text("[")
    assert bindings.bound(1) == "", "a damaged file names nobody"
