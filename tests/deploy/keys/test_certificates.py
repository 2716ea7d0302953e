"""Certificates of the server and its authority."""

import datetime
import ipaddress
import stat
from pathlib import Path

import pytest
from cryptography import x509

from common.errors import ConfigError
from deploy.keys.certificates import Certificates, make_authority, make_server_certificate


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
