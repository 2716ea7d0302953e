"""Invitation files: the check code, and refusal of every malformed file."""

import json
import os
import re
import ssl
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import ConfigError
from deploy.keys.certificates import make_authority, make_server_certificate
from deploy.keys.invitation import MAX_BYTES, Invitation, read_invitation
from tests.support.invitations import make_toy_invitation, write_changed


@pytest.fixture
def invitation(tmp_path: Path) -> Invitation:
    return make_toy_invitation(tmp_path / "home")


def test_a_written_invitation_is_read_with_the_same_check_code(invitation: Invitation, tmp_path: Path) -> None:
    invitation.write(tmp_path / "one.fedloom")
    received = read_invitation(tmp_path / "one.fedloom")
    assert received == invitation
    assert received.code == invitation.code
    assert re.fullmatch(r"[A-Z2-7]{4}(-[A-Z2-7]{4}){3}", received.code)
    assert "PRIVATE KEY" not in (tmp_path / "one.fedloom").read_text()


def test_a_clients_invitation_has_the_code_of_all_and_is_closed_to_others(
    invitation: Invitation, tmp_path: Path
) -> None:
    for_client = invitation.model_copy(update={"client": "shop-3", "token": "secret"})
    for_client.write(tmp_path / "one.fedloom")
    invitation.write(tmp_path / "all.fedloom")
    assert (tmp_path / "one.fedloom").stat().st_mode & 0o077 == 0
    assert read_invitation(tmp_path / "one.fedloom") == for_client
    assert for_client.code == invitation.code
    assert "  admits      client 'shop-3', once" in for_client.lines()
    assert "secret" not in repr(for_client)
    assert "token" not in (tmp_path / "all.fedloom").read_text()


def test_form_and_order_of_the_file_do_not_change_the_code(invitation: Invitation, tmp_path: Path) -> None:
    values = json.loads(invitation.to_json())
    (tmp_path / "two.fedloom").write_text(json.dumps(dict(reversed(values.items())), indent=7))
    assert read_invitation(tmp_path / "two.fedloom").code == invitation.code


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "x"),
        ("server", "evil.example.org:9092"),
        ("rounds", 4),
        ("min_sum", 2),
        ("plaintext", []),
        ("contact", ""),
        ("made", "2026-11-23T01:02:04Z"),
    ],
)
def test_every_field_changes_the_code(invitation: Invitation, tmp_path: Path, field: str, value: object) -> None:
    changed = read_invitation(write_changed(invitation, tmp_path / "x", **{field: value}))
    assert changed.code != invitation.code
    assert not changed.has_code(invitation.code)


def test_a_code_is_compared_without_case_and_separators(invitation: Invitation) -> None:
    assert invitation.has_code(invitation.code.lower().replace("-", " "))
    assert not invitation.has_code(invitation.code[:-1])
    assert not invitation.has_code("")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"extra": 1}, "'extra' Extra inputs"),
        ({"fedloom_invite": 4}, "newer fedloom (format 4; this one reads up to 3)"),
        ({"fedloom_invite": 1}, "an invitation of version 1, which lacks the terms of the run; ask the server's owner"),
        ({"tasks": None}, "'terms.tasks' Field required"),
        ({"tasks": ["no-such-task"]}, "no-such-task"),
        ({"tasks": ["../rules"]}, "'terms.tasks.0'"),
        ({"tasks": ["rules", "sessions"]}, "'terms' are not those of one run"),
        ({"methods": ["x\ny"]}, "'terms.methods.0'"),
        ({"rounds": 0}, "'terms.rounds'"),
        ({"rounds": None}, "'terms' are not those of one run"),
        ({"rounds": "many"}, "'terms.rounds'"),
        ({"unit": "client"}, "'terms' have noise without a limit"),
        ({"helpers": ["SHA256:short"]}, "'terms.helpers.0'"),
        ({"name": "a\x1b[31mb"}, "control characters"),
        ({"client": "../shop"}, "'client' String should match pattern"),
        ({"token": "a\x1bb"}, "'token' holds control characters"),
        ({"contact": "a\u202eb"}, "control characters"),
        ({"contact": "x" * 201}, "'contact'"),
        ({"server": "https://train.example.org:9092"}, "without a scheme"),
        ({"server": "train.example.org"}, "HOST:PORT"),
        ({"server": "train.example.org:0"}, "HOST:PORT"),
        ({"server": "train.example.org:70000"}, "HOST:PORT"),
        ({"server": "train.example.org:9092\n"}, "HOST:PORT"),
        ({"server": "train\x00.example.org:9092"}, "HOST:PORT"),
        ({"server": "user@train.example.org:9092"}, "HOST:PORT"),
        ({"server": "../../etc:9092"}, "HOST:PORT"),
        ({"server": f"{'a.' * 200}b:1"}, "HOST:PORT"),
        ({"ca_pem": ""}, "exactly one certificate"),
        ({"ca_pem": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}, "PEM text"),
        ({"epsilon": 1e999}, "'terms.epsilon'"),
        ({"unit": "everything"}, "'terms.unit'"),
        ({"made": "2026-11-23T01:02:03"}, "'made'"),
        ({"made": "yesterday"}, "'made'"),
        ({"catalogue": []}, "'catalogue'"),
        ({"catalogue": {"devices": 3}}, "catalogue"),
    ],
)
def test_a_malformed_invitation_is_refused_by_field(
    invitation: Invitation, tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        read_invitation(write_changed(invitation, tmp_path / "bad.fedloom", **changes))
    assert reason in str(refused.value)
    assert str(refused.value).isprintable()


def test_a_pem_with_two_certificates_or_a_key_is_refused(invitation: Invitation, tmp_path: Path) -> None:
    files = make_authority(tmp_path / "other")
    make_server_certificate(tmp_path / "other")
    for more in (files.ca, files.ca_key):
        pem = invitation.ca_pem + more.read_text()
        with pytest.raises(ConfigError, match="exactly one certificate"):
            read_invitation(write_changed(invitation, tmp_path / "x", ca_pem=pem))
    with pytest.raises(ConfigError, match="certificate authority"):
        read_invitation(write_changed(invitation, tmp_path / "x", ca_pem=files.server.read_text()))


def test_a_certificate_with_a_negative_serial_number_is_refused(invitation: Invitation, tmp_path: Path) -> None:
    der = bytearray(ssl.PEM_cert_to_DER_cert(invitation.ca_pem))
    der[der.index(b"\xa0\x03\x02\x01\x02\x02") + 7] |= 0x80  # sign of the number after the version
    with pytest.raises(ConfigError, match="certificate authority"):
        read_invitation(write_changed(invitation, tmp_path / "x", ca_pem=ssl.DER_cert_to_PEM_cert(bytes(der))))


def test_a_vocabulary_of_over_a_million_names_is_refused(invitation: Invitation, tmp_path: Path) -> None:
    path = write_changed(invitation, tmp_path / "x", catalogue={"items": ["a"] * 1_000_000})
    with pytest.raises(ConfigError, match="has 1,000,001 names, more than 1,000,000"):
        read_invitation(path)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ConfigError, match="larger than 16,777,216 bytes"):
        read_invitation(tmp_path / "large")


def test_links_folders_pipes_and_missing_files_are_refused(invitation: Invitation, tmp_path: Path) -> None:
    invitation.write(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    for name, reason in {
        "link": "symbolic link",
        "pipe": "not a file",
        "home": "not a file",
        "gone": "No such",
    }.items():
        with pytest.raises(ConfigError, match=reason):
            read_invitation(tmp_path / name)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", '"x"', "{", "[" * 100_000, '{"name": "\\ud800"}', "\x00", "1" * 5000]
)
def test_other_texts_are_no_invitation(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(ConfigError, match="no invitation"):
        read_invitation(tmp_path / "x")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_refused_or_has_another_code(
    invitation: Invitation, tmp_path: Path, data: st.DataObject
) -> None:
    content = bytearray(invitation.to_json().encode())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] = data.draw(st.integers(0, 255))
    (tmp_path / "damaged").write_bytes(content)
    try:
        received = read_invitation(tmp_path / "damaged")
    except ConfigError:
        return
    assert received.code != invitation.code or received == invitation
