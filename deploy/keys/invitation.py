"""Invitation to a federation: the public file `*.fedloom` and its acceptance."""

import base64
import hashlib
import json
import os
import re
import stat
import warnings
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.utils import CryptographyDeprecationWarning
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from common.config.run import RunConfig
from common.contract import Contract, terms_of
from common.errors import ConfigError, DataError, StateError
from common.files import check_format
from common.hosts import check_address
from common.node_names import NODE_NAME, default_name, fingerprint, to_word
from common.tasks.registry import TASKS, read_vocabulary
from common.tasks.vocabulary import Vocabulary
from deploy.cli.options import ClientRequest, ServerRequest
from deploy.cli.output import note
from deploy.files import write_file
from deploy.keys.nodes import load_private_key, make_node_key

MAX_NAMES = 1_000_000
"""Maximum number of texts in a vocabulary."""


def _check_printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds control characters")
    return text


def _check_authority(pem: str) -> str:
    if pem.count("-----BEGIN ") != 1:
        raise ValueError("must hold exactly one certificate")
    try:
        authority = load_certificate(pem)
        constraints = authority.extensions.get_extension_for_class(x509.BasicConstraints).value
    except (ValueError, x509.ExtensionNotFound):
        raise ValueError("is not the PEM text of a certificate authority") from None
    if not constraints.ca:
        raise ValueError("is not the PEM text of a certificate authority")
    return pem


def load_certificate(pem: str) -> x509.Certificate:
    """Return the certificate of a PEM text.

    Raises:
        ValueError: The text is no certificate, or one that RFC 5280 forbids, such as one with a negative serial number.
    """
    with warnings.catch_warnings(action="error", category=CryptographyDeprecationWarning):
        try:
            return x509.load_pem_x509_certificate(pem.encode())
        except CryptographyDeprecationWarning as error:
            raise ValueError(str(error)) from None


def _check_size(catalogue: dict[str, Any]) -> dict[str, Any]:
    if (names := _count_texts(catalogue)) > MAX_NAMES:
        raise ValueError(f"has {names:,} names, more than {MAX_NAMES:,}")
    return catalogue


def _count_texts(value: object) -> int:
    """Return the number of texts in a JSON value, keys of objects included."""
    pending, texts = [value], 0
    while pending:
        one = pending.pop()
        texts += isinstance(one, str)
        pending += one if isinstance(one, list) else (*one, *one.values()) if isinstance(one, dict) else ()
    return texts


Line = Annotated[str, StringConstraints(max_length=200), AfterValidator(_check_printable)]
"""Printable text of one line."""

ClientName = Annotated[str, StringConstraints(pattern=rf"^({NODE_NAME.pattern})?$")]
"""Public name of a client, or nothing."""

Address = Annotated[str, AfterValidator(check_address)]
"""Address `host:port`."""

Authority = Annotated[str, StringConstraints(max_length=16_384), AfterValidator(_check_authority)]
"""PEM of one certificate authority."""


def _check_run(terms: Contract) -> Contract:
    if len(terms.tasks) != 1 or not (terms.methods and terms.trust) or None in (terms.rounds, terms.local_steps):
        raise ValueError("are not those of one run")
    if terms.unit != "none" and (terms.epsilon is None or terms.delta is None):
        raise ValueError("have noise without a limit")
    return terms


Terms = Annotated[Contract, AfterValidator(_check_run)]
"""Terms of one run."""

Catalogue = Annotated[dict[str, Any], AfterValidator(_check_size)]
"""Vocabulary as JSON; the task's own class checks it afterwards."""


MAX_BYTES = 16 * 2**20
"""Maximum size of a file."""

CODE_BYTES = 10
"""Bytes of the check code; a forger could match half of them."""


INVITE_FORMAT, FIRST_WITH_TERMS = 3, 2
"""Version of the format of invitations, and the oldest one that is read."""

SECRETS = {"client", "token"}
"""Fields of one client's invitation; the check code leaves them out."""

FOUND = "clients find the vocabulary: each sends names in its data, if its policy has allow-names; fedloom preview shows them"
"""Line of an invitation without a vocabulary."""


def _check_version(found: int) -> int:
    if (version := check_format("this invitation", found, INVITE_FORMAT)) < FIRST_WITH_TERMS:
        raise ConfigError(
            f"an invitation of version {version}, which lacks the terms of the run; ask the server's owner for a new one"
        )
    return version


FormatVersion = Annotated[int, AfterValidator(_check_version)]
"""Version of an invitation's format, as far as this program reads it."""


class Invitation(BaseModel):
    """Public facts of a federation, and for one client the token that admits it.

    A token is secret until it is used.
    Its terms are the most that a client which joins by it does for the server; the client's policy limits them further.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    fedloom_invite: FormatVersion = INVITE_FORMAT
    name: Line
    server: Address
    ca_pem: Authority
    terms: Terms
    catalogue: Catalogue
    """Vocabulary; empty if clients find it."""
    contact: Line = ""
    made: AwareDatetime
    client: ClientName = ""
    """Name of the one client that it admits; empty if the server's owner registers keys."""
    token: Line = Field(default="", repr=False)

    @property
    def task(self) -> str:
        """Name of the task."""
        return self.terms.tasks[0]

    @property
    def host(self) -> str:
        """Host name or address of the server."""
        return self.server.rpartition(":")[0].strip("[]").lower()

    @property
    def authority(self) -> str:
        """Fingerprint of the certificate authority, SHA-256 in hexadecimal."""
        return load_certificate(self.ca_pem).fingerprint(hashes.SHA256()).hex()

    @property
    def code(self) -> str:
        """Check code: 80 bits of SHA-256 of the canonical JSON, four groups of four letters and digits."""
        facts = self.model_dump(mode="json", exclude=SECRETS)
        canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
        text = base64.b32encode(hashlib.sha256(canonical.encode()).digest()[:CODE_BYTES]).decode()
        return "-".join(text[k : k + 4] for k in range(0, len(text), 4))

    def has_code(self, code: str) -> bool:
        """Return True if the code is that of this invitation; case and separators do not matter."""
        return re.sub(r"[\s-]", "", code).upper() == self.code.replace("-", "")

    def check_catalogue(self) -> Self:
        """Accept the vocabulary.

        Raises:
            ConfigError: The task is not installed, or the vocabulary is not of it.
        """
        if self.task not in TASKS:
            raise ConfigError(TASKS.describe_unknown(self.task))
        if not self.catalogue:
            if not TASKS[self.task].vocabulary.is_listed:
                raise ConfigError(f"catalogue: clients cannot find the vocabulary of task '{self.task}'; name a file")
            return self
        try:
            read_vocabulary(self.task, json.dumps(self.catalogue, allow_nan=False))
        except (DataError, ValueError) as error:
            raise ConfigError(f"catalogue: {error}; ask the server's owner for a new invitation") from None
        return self

    def lines(self) -> list[str]:
        """Return what an owner must see before the first connection, ending with the check code."""
        rows = {
            "federation": self.name,
            "server": self.server,
            **self.terms.rows(),
            "names": "" if self.catalogue else FOUND,
            "contact": self.contact,
            "made": f"{self.made.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
            "admits": f"client '{self.client}', once" if self.token else "",
            "check code": self.code,
        }
        return [f"  {key:<12}{text}" for key, text in rows.items() if text]

    def to_json(self) -> str:
        """Return the text of the file; it is ASCII."""
        return json.dumps(self.model_dump(mode="json", exclude=set() if self.token else SECRETS), indent=1)

    def write(self, path: Path) -> None:
        """Write the file; other users cannot read one with a token.

        Raises:
            ConfigError: The file exists, or is too large.
        """
        content = self.to_json().encode() + b"\n"
        if len(content) > MAX_BYTES:
            raise ConfigError(f"the invitation has {len(content):,} bytes, more than {MAX_BYTES:,}; use fewer names")
        write_file(path, content, mode=0o600 if self.token else 0o644)


def make_invitation(
    config: RunConfig,
    vocabulary: Vocabulary | None,
    server: str,
    ca_pem: str,
    name: str = "",
    contact: str = "",
    helpers: Sequence[str] = (),
) -> Invitation:
    """Return the invitation to a run at a server; without a vocabulary if clients find it.

    `helpers` are keys of helpers, without which a run is beyond the invitation.

    Raises:
        ConfigError: The address, the certificate, a key or a text is invalid.
    """
    try:
        return Invitation(
            name=name or server.rpartition(":")[0].strip("[]"),
            server=server,
            ca_pem=ca_pem,
            terms=terms_of(config, helpers, is_started=False),
            catalogue=vocabulary.model_dump(mode="json") if vocabulary else {},
            contact=contact,
            made=datetime.now(UTC).replace(microsecond=0),
        ).check_catalogue()
    except ValidationError as error:
        raise ConfigError(f"invalid invitation: {_explain(error)}") from None


def read_invitation(path: Path) -> Invitation:
    """Read an invitation of somebody else.

    Raises:
        ConfigError: The file is missing, a link, too large, malformed, or of a newer program.
    """
    content = _read(path)
    try:
        return Invitation.model_validate_json(content).check_catalogue()
    except (ConfigError, StateError) as error:
        raise ConfigError(f"{path}: {error}") from None
    except ValidationError as error:
        raise ConfigError(f"{path} is no invitation: {_explain(error)}; ask the server's owner for a new one") from None


def _explain(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    location = ".".join(str(part) for part in first["loc"])[:80]
    return f"{location!r} {first['msg'].removeprefix('Value error, ')}" if location else first["msg"]


def _read(path: Path) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise ConfigError(f"invitation {path} is not a file; name the file itself")
    except OSError as error:
        reason = "it is a symbolic link" if path.is_symlink() else error.strerror
        raise ConfigError(f"cannot read invitation {path} ({reason}); name the file itself") from None
    with open(handle, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ConfigError(f"invitation {path} is larger than {MAX_BYTES:,} bytes; ask the server's owner for a new one")
    return content


KEY_FILE = "node.key"
SERVERS = "servers"
"""Folder of the private state with the authorities of servers, stored at first use."""


def accept(at: ServerRequest, client: ClientRequest) -> tuple[ServerRequest, ClientRequest]:
    """Return the options of a client that joins by an invitation; print what its owner must check.

    A missing key is created. The invitation sets address, authority and task, and the name of a client that it admits.

    Raises:
        ConfigError: The invitation is malformed or contradicts an option, the code is another one, or the server had another
            authority before.
    """
    if at.invite is None:
        return at, client
    for option, value in (("--server", at.server), ("--ca", at.ca), ("--insecure", at.insecure)):
        if value:
            raise ConfigError(f"{option} contradicts --invite, which names server and CA; remove one of them")
    invitation = read_invitation(at.invite)
    if client.task not in ("", invitation.task):
        raise ConfigError(f"the invitation is to task {invitation.task}; remove --task {client.task}")
    if invitation.client and client.name not in ("", invitation.client):
        raise ConfigError(f"the invitation is for client '{invitation.client}'; remove --name {client.name}")
    note(f"invitation {at.invite}")
    for line in invitation.lines():
        note(line)
    if at.code and not invitation.has_code(at.code):
        raise ConfigError(
            f"the check code of {at.invite} is {invitation.code}, not {at.code[:40]!r}; ask its sender for the file again"
        )
    state = client.state_dir
    authority = store_authority(state, invitation)
    key = at.key or state / KEY_FILE
    if not key.exists() and at.key is None:
        make_node_key(key)
    public = load_private_key(key).public_key()
    name = invitation.client or client.name or default_name(fingerprint(public))
    if not invitation.token:
        note("the server's owner admits this client by\n  " + f"fedloom nodes add {to_word(public)} --name {name}")
    client = replace(client, task=invitation.task, name=invitation.client or client.name)
    return replace(at, server=invitation.server, ca=authority, key=key), client


def store_authority(state: Path, invitation: Invitation) -> Path:
    """Return the file of a server's authority, stored at first use.

    Raises:
        ConfigError: Another authority is stored for the server's name.
    """
    path = state / SERVERS / f"{invitation.host}.pem"
    if not path.exists():
        write_file(path, invitation.ca_pem.encode(), mode=0o600)
        return path
    stored = invitation.model_copy(update={"ca_pem": path.read_text("ascii", "replace")})
    if stored.authority != invitation.authority:
        raise ConfigError(
            f"the invitation names another certificate authority for '{invitation.host}' than before:"
            f" SHA-256 {invitation.authority}, before {stored.authority}; ask the server's owner, and remove {path} if"
            " the new one is right"
        )
    return path
