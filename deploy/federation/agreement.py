"""Agreement of an owner to the terms of a server, before a client joins it."""

import hashlib
import sys
from pathlib import Path

import typer
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from pydantic import ValidationError

from client.checks import open_consent
from client.node.failures import Server
from client.owner.consent import worst_of
from client.owner.policy import Policy
from client.settings import ClientSettings
from common.contract import Contract, side_by_side
from common.errors import ConfigError
from deploy.cli.options import ServerRequest
from deploy.cli.output import note
from deploy.files import read_file
from deploy.keys.invitation import read_invitation

BY_POLICY = "policy"
"""Value of `--accept` that agrees to each run that the policy allows."""


def identity_of(at: ServerRequest) -> str:
    """Return the identity of a server: the fingerprint of its authority, or its address without TLS.

    Raises:
        ConfigError: The file of the authority holds no certificate.
    """
    if at.ca is None:
        return f"without TLS: {at.server}"
    try:
        found = x509.load_pem_x509_certificates(read_file(at.ca))
    except ValueError:
        raise ConfigError(f"{at.ca} holds no certificate; give the ca.pem of the server's owner") from None
    return "SHA256:" + hashlib.sha256(b"".join(one.public_bytes(Encoding.DER) for one in found)).hexdigest()


class Agreements:
    """Terms that the owner gives for a server, for one client or all clients of a hub.

    Raises:
        ConfigError: The address or the terms are malformed.
    """

    def __init__(self, at: ServerRequest) -> None:
        if at.server:
            Server(at.server)
        self._at, self._announced = at, set[str]()
        self._terms: Contract | None = None
        self._by = ""
        if at.accept not in ("", BY_POLICY):
            self._terms = read_terms(Path(at.accept))
            self._by = f"file {self._terms.short_hash}"
        elif at.invite and not at.accept:
            invitation = read_invitation(at.invite)
            self._terms, self._by = invitation.terms, f"invitation {invitation.code}"

    def settle(self, settings: ClientSettings, policy: Policy) -> None:
        """Store the terms for a client, or say under which ones it joins the server.

        An invitation or a file is agreed to once: what the owner agreed to since then stays.

        Raises:
            ConfigError: An invitation exceeds the contract and has no check code, or the owner declines.
        """
        if not self._at.server:
            return
        consent = open_consent(settings)
        stored, agreed, terms = consent.read(), consent.contract, self._terms
        if terms and self._by not in {one.by for one in stored.agreed}:
            if agreed and terms.beyond(agreed) and not (self._at.code or self._at.accept):
                table = "\n".join(side_by_side(agreed, terms))
                raise ConfigError(
                    f"{self._at.invite} has terms beyond those agreed with this server; add its check code with --code to"
                    f" agree\n{table}"
                )
            consent.agree(terms, self._by)
        elif agreed:
            note(f"terms {agreed.short_hash} are agreed with this server; fedloom status shows them")
        elif (worst := worst_of(policy)).hash not in self._announced:
            self._announced.add(worst.hash)
            _announce(worst, is_first=self._at.accept != BY_POLICY)


def read_terms(path: Path) -> Contract:
    """Read terms as `fedloom preview --terms` writes them.

    Raises:
        ConfigError: The file is missing or holds other content.
    """
    try:
        return Contract.model_validate_json(read_file(path))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"]))[:80]
        raise ConfigError(
            f"{path} holds no terms: {field!r} {first['msg']}; write them with fedloom preview --terms FILE"
        ) from None


def _announce(worst: Contract, *, is_first: bool) -> None:
    """Print the most that the policy allows; at a terminal, ask the owner."""
    note("at most, the policy allows a server:")
    for line in worst.lines():
        note(line)
    if not is_first:
        return
    note("the first terms that the server offers within these limits are agreed to; it cannot ask for more later")
    is_asked = sys.stdin.isatty() and sys.stderr.isatty()
    if is_asked and not typer.confirm("Take part under these limits?", err=True):
        raise ConfigError("not agreed; set stricter limits with --policy, --method or --epsilon")
