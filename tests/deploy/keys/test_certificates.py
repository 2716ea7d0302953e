"""Certificates of the server and its authority, and keys of nodes."""

import base64
import datetime
import hashlib
import ipaddress
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from common.errors import ConfigError
from common.node_names import fingerprint
from deploy.keys.certificates import Certificates, make_authority, make_server_certificate
from deploy.keys.nodes import load_private_key, load_public_key, make_node_key, public_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_authority(tmp_path)
    return tmp_path


def _server(files: Certificates) -> x509.Certificate:
    return x509.load_pem_x509_certificate(files.server.read_bytes())


def test_the_authority_has_signed_the_server(folder: Path) -> None:
    files = make_server_certificate(folder)
    authority = x509.load_pem_x509_certificate(files.ca.read_bytes())
    _server(files).verify_directly_issued_by(authority)


def test_the_server_has_its_local_and_configured_names(folder: Path) -> None:
    files = make_server_certificate(folder, ["superlink", "10.1.2.3"])
    names = _server(files).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "superlink"]
    expected = [ipaddress.ip_address(a) for a in ("127.0.0.1", "::1", "10.1.2.3")]
    assert names.get_values_for_type(x509.IPAddress) == expected


def test_private_keys_are_readable_by_their_owner_only(folder: Path) -> None:
    files = make_server_certificate(folder)
    for key in (files.ca_key, files.server_key):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600


@pytest.mark.parametrize("days", [30, -1])
def test_validity_ends_after_the_configured_days(folder: Path, days: int) -> None:
    certificate = _server(make_server_certificate(folder, days=days))
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    assert abs(certificate.not_valid_after_utc - end) < datetime.timedelta(minutes=1)
    assert certificate.not_valid_before_utc < certificate.not_valid_after_utc


def test_nothing_is_overwritten_without_the_option(folder: Path) -> None:
    files = make_server_certificate(folder)
    before = files.server.read_bytes(), files.ca.read_bytes()
    with pytest.raises(ConfigError, match="remove it or choose another path"):
        make_authority(folder)
    with pytest.raises(ConfigError, match="remove it or choose another path"):
        make_server_certificate(folder)
    assert (files.server.read_bytes(), files.ca.read_bytes()) == before

    make_server_certificate(folder, overwrite=True)
    assert files.server.read_bytes() != before[0]
    assert sorted(path.name for path in folder.iterdir()) == ["ca.key", "ca.pem", "server.key", "server.pem"]


def test_a_server_certificate_needs_an_authority(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="create a certificate authority"):
        make_server_certificate(tmp_path)


def test_both_halves_belong_together(tmp_path: Path) -> None:
    made = make_node_key(tmp_path / "node.key")
    private, public = load_private_key(tmp_path / "node.key"), load_public_key(tmp_path / "node.key.pub")
    assert private.public_key() == public == made
    assert isinstance(private.curve, ec.SECP384R1)


def test_files_are_as_flower_and_ssh_expect_them(tmp_path: Path) -> None:
    make_node_key(tmp_path / "node.key")
    assert (tmp_path / "node.key").read_text().startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert public_path(tmp_path / "node.key").read_text().startswith("ecdsa-sha2-nistp384 ")
    assert stat.S_IMODE((tmp_path / "node.key").stat().st_mode) == 0o600


def test_an_existing_key_is_not_overwritten(tmp_path: Path) -> None:
    made = make_node_key(tmp_path / "node.key")
    with pytest.raises(ConfigError, match="remove it or choose another path"):
        make_node_key(tmp_path / "node.key")
    assert load_public_key(tmp_path / "node.key.pub") == made
    assert make_node_key(tmp_path / "node.key", overwrite=True) != made


def test_the_fingerprint_equals_that_of_ssh() -> None:
    """The curve's base point (FIPS 186-4, D.1.2.4) in the form of RFC 5656: name, curve, 04‖x‖y."""
    x = "aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e3872760ab7"
    y = "3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f"
    point = b"\x04" + bytes.fromhex(x) + bytes.fromhex(y)
    parts = (b"ecdsa-sha2-nistp384", b"nistp384", point)
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    expected = "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    assert fingerprint(ec.derive_private_key(1, ec.SECP384R1()).public_key()) == expected


def test_invalid_key_files_are_refused(tmp_path: Path) -> None:
    make_node_key(tmp_path / "node.key")
    with pytest.raises(ConfigError, match="No such file"):
        load_private_key(tmp_path / "absent")
    with pytest.raises(ConfigError, match="not a private key"):
        load_private_key(tmp_path / "node.key.pub")
    with pytest.raises(ConfigError, match=r"use the file that ends in \.pub"):
        load_public_key(tmp_path / "node.key")
