"""Registered and revoked keys, and names that belong to keys."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from common.errors import ConfigError
from common.node_names import FILE, default_name, fingerprint, from_word, openssh_line, read_names, to_word
from deploy.keys.nodes import add_key, list_nodes, read_key, revoke_key, rotate_key


def new_key(curve: ec.EllipticCurve | None = None) -> ec.EllipticCurvePublicKey:
    return ec.generate_private_key(curve or ec.SECP384R1()).public_key()


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()], ids=lambda curve: curve.name)
def test_a_key_is_copied_as_one_word(curve: ec.EllipticCurve) -> None:
    key = new_key(curve)
    assert to_word(key).isascii()
    assert not set(to_word(key)) & set(" '\"$&|;<>+/=")
    assert from_word(to_word(key)) == key


@pytest.mark.parametrize("word", ["fl1:", "fl1:AAAA", "fl1:!!!!", "fl1:" + "A" * 66, "fl1:é", "fl1:" + "B" * 10_000])
def test_a_damaged_word_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match="is not a public key"):
        read_key(word)


def test_a_key_is_read_from_a_word_a_line_and_a_file(tmp_path: Path) -> None:
    key = new_key()
    (tmp_path / "one.pub").write_bytes(openssh_line(key))
    assert all(read_key(form) == key for form in (to_word(key), openssh_line(key).decode(), str(tmp_path / "one.pub")))
    with pytest.raises(ConfigError, match="the given line is not a public key"):
        read_key("ecdsa-sha2-nistp384 AAAA")


def test_a_name_belongs_to_the_key_that_it_was_bound_to(tmp_path: Path) -> None:
    ann, bob = new_key(), new_key()
    add_key(tmp_path, ann, "home-7")
    with pytest.raises(ConfigError, match=r"name 'home-7' belongs to key SHA256:.*fedloom nodes revoke home-7"):
        add_key(tmp_path, bob, "home-7")
    assert [entry.name for entry in list_nodes(tmp_path)] == ["home-7"]
    assert read_names(tmp_path)["home-7"].fingerprint == fingerprint(ann)


def test_a_new_name_of_a_key_replaces_the_old_one(tmp_path: Path) -> None:
    ann = new_key()
    first, second = add_key(tmp_path, ann, "home-7"), add_key(tmp_path, ann, "home-8")
    assert first == second
    assert [*read_names(tmp_path)] == ["home-8"]
    added = read_names(tmp_path)["home-8"].added
    add_key(tmp_path, ann, "home-8")
    assert read_names(tmp_path)["home-8"].added == added


def test_a_rotated_name_has_the_new_key_and_the_old_one_stays_refused(tmp_path: Path) -> None:
    old, new = new_key(), new_key()
    add_key(tmp_path, old, "home-7")
    with pytest.raises(ConfigError, match="has this key already"):
        rotate_key(tmp_path, "home-7", old)
    with pytest.raises(ConfigError, match="no key has the name 'home-8'"):
        rotate_key(tmp_path, "home-8", new)
    rotate_key(tmp_path, "home-7", new)
    assert [(entry.name, entry.fingerprint, entry.state) for entry in list_nodes(tmp_path)] == [
        ("home-7", fingerprint(new), "registered"),
        ("home-7", fingerprint(old), "revoked"),
    ]
    with pytest.raises(ConfigError, match="was revoked"):
        rotate_key(tmp_path, "home-7", old)


def test_a_key_without_a_name_keeps_the_names_of_others(tmp_path: Path) -> None:
    add_key(tmp_path, new_key(), "home-7")
    add_key(tmp_path, new_key())
    assert sorted(entry.name for entry in list_nodes(tmp_path)) == ["", "home-7"]


def test_a_file_of_the_same_key_is_not_doubled(tmp_path: Path) -> None:
    ann = new_key()
    (tmp_path / "client-1.pub").write_bytes(openssh_line(ann) + b" ann@laptop\n")
    assert add_key(tmp_path, ann, "ann") == tmp_path / "client-1.pub"
    assert [(entry.name, entry.file.name) for entry in list_nodes(tmp_path)] == [("ann", "client-1.pub")]


@pytest.mark.parametrize("by_name", [True, False])
def test_a_revoked_key_stays_refused_and_its_name_is_free(tmp_path: Path, by_name: bool) -> None:
    ann, bob = new_key(), new_key()
    add_key(tmp_path, ann, "home-7")
    revoked = revoke_key(tmp_path, "home-7" if by_name else fingerprint(ann))
    assert (revoked.name, revoked.fingerprint) == ("home-7", fingerprint(ann))
    assert [*tmp_path.glob("*.pub")] == []
    with pytest.raises(ConfigError, match="was revoked; let its owner create a new key"):
        add_key(tmp_path, ann)
    add_key(tmp_path, bob, "home-7")
    assert [(entry.name, entry.state) for entry in list_nodes(tmp_path)] == [
        ("home-7", "registered"),
        ("home-7", "revoked"),
    ]


@pytest.mark.parametrize("absent", ["", "nobody", "SHA256:x", "\x1b[31m"])
def test_an_unknown_client_cannot_be_revoked(tmp_path: Path, absent: str) -> None:
    add_key(tmp_path, new_key())
    with pytest.raises(ConfigError, match="no registered key") as refused:
        revoke_key(tmp_path, absent)
    assert str(refused.value).isprintable()
    assert len(list_nodes(tmp_path)) == 1


@pytest.mark.parametrize("name", ["../x", "a b", "-x", "", "é", "x" * 65, "a\nb", "[x]", ".x"])
def test_an_invalid_name_is_refused(tmp_path: Path, name: str) -> None:
    if not name:
        return
    with pytest.raises(ConfigError, match="invalid name"):
        add_key(tmp_path, new_key(), name)
    assert list_nodes(tmp_path) == []


def test_a_file_without_a_key_is_listed_as_unreadable(tmp_path: Path) -> None:
    (tmp_path / "half.pub").write_text("ecdsa-sha2-nistp384 AAA")
    (tmp_path / "rsa.pub").write_text("ssh-rsa AAAA")
    assert {entry.state for entry in list_nodes(tmp_path)} == {"unreadable"}


@pytest.mark.parametrize(
    "text",
    [
        "x = 1",
        "[",
        '[ann]\nfingerprint = "SHA256:short"\nadded = 2026-11-23T00:00:00Z',
        "[ann]\nextra = 1",
        '[ann]\nfingerprint = "MARK"\nadded = 2026-11-23T00:00:00Z\n[bob]\nfingerprint = "MARK"\nadded = 2026-11-23T00:00:00Z',
        '["a b"]\nfingerprint = "MARK"\nadded = 2026-11-23T00:00:00Z',
        "\udcff",
    ],
)
def test_a_damaged_file_of_names_is_refused(tmp_path: Path, text: str) -> None:
    mark = fingerprint(new_key())
    (tmp_path / FILE).write_bytes(text.replace("MARK", mark).encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match=FILE):
        read_names(tmp_path)


def test_a_hub_is_registered_with_a_number_of_clients(tmp_path: Path) -> None:
    ward, shop = new_key(), new_key()
    add_key(tmp_path, ward, clients=125)
    add_key(tmp_path, shop, "shop", clients=3)
    add_key(tmp_path, shop, "store")
    numbers = {name: key.clients for name, key in read_names(tmp_path).items()}
    assert numbers == {default_name(fingerprint(ward)): 125, "store": 3}
    assert (tmp_path / FILE).read_text().count("clients") == 2
    add_key(tmp_path, shop, clients=1)
    assert (tmp_path / FILE).read_text().count("clients") == 1
    renewed = new_key()
    rotate_key(tmp_path, default_name(fingerprint(ward)), renewed)
    assert read_names(tmp_path)[default_name(fingerprint(ward))].clients == 125
