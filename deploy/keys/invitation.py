"""Invitation to a federation: the public file `*.fedloom` and its acceptance."""

import base64
import hashlib
import json
import os
import re
import stat
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from common.config.run import RunConfig
from common.errors import ConfigError, DataError
from common.node_names import default_name, fingerprint, to_word
from common.privacy.options import MechanismName, Unit
from common.tasks.registry import TASKS, read_vocabulary
from common.tasks.vocabulary import Vocabulary
from common.text import count
from deploy.cli.options import ClientRequest, ServerRequest
from deploy.cli.output import note
from deploy.files import write_file
from deploy.keys.nodes import load_private_key, make_node_key

MAX_NAMES = 1_000_000
"""Maximum number of texts in a vocabulary."""

_HOST = r"([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:.]+\])"
_ADDRESS = re.compile(rf"(?P<host>{_HOST}):(?P<port>[0-9]{{1,5}})")


def _check_printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds control characters")
    return text


def check_address(address: str) -> str:
    """Return an address that has the form HOST:PORT.

    Raises:
        ValueError: It has another form.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None or len(found["host"]) > 253 or not 0 < int(found["port"]) < 65536:
        raise ValueError(
            "is not HOST:PORT; a host name, an IPv4 address or an IPv6 address in brackets, without a scheme"
        )
    return address


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
        ValueError: The text is no certificate.
    """
    return x509.load_pem_x509_certificate(pem.encode())


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

Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
"""Name of a task or a method."""

Address = Annotated[str, AfterValidator(check_address)]
"""Address `host:port`."""

Authority = Annotated[str, StringConstraints(max_length=16_384), AfterValidator(_check_authority)]
"""PEM of one certificate authority."""

Catalogue = Annotated[dict[str, Any], AfterValidator(_check_size)]
"""Vocabulary as JSON; the task's own class checks it afterwards."""


MAX_BYTES = 16 * 2**20
"""Maximum size of a file."""

CODE_BYTES = 10
"""Bytes of the check code; a forger could match half of them."""


class InvitedPrivacy(BaseModel):
    """Noise of the run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unit: Unit = "none"
    mechanism: MechanismName = "gaussian"
    epsilon: float = Field(10.0, gt=0, allow_inf_nan=False)
    delta: float = Field(1e-5, gt=0, lt=1)

    def __str__(self) -> str:
        """Return one line of text."""
        if self.unit == "none":
            return "none; updates are sent without noise"
        sent = "everything that a client sends" if self.unit == "client" else "each record of a client"
        return f"noise on {sent}: ε = {self.epsilon:g}, δ = {self.delta:g} ({self.mechanism})"


class Invitation(BaseModel):
    """Public facts of a federation; it holds no secret and allows nothing: the client's policy decides."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fedloom_invite: Literal[1] = 1
    name: Line
    server: Address
    ca_pem: Authority
    task: Word
    method: Word
    catalogue: Catalogue
    privacy: InvitedPrivacy
    rounds: int = Field(ge=1, lt=2**31)
    contact: Line = ""
    made: AwareDatetime

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
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), allow_nan=False)
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
            "task": f"{self.task} by {self.method}, {count(self.rounds, 'round')}",
            "privacy": str(self.privacy),
            "contact": self.contact,
            "made": f"{self.made.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
            "check code": self.code,
        }
        return [f"  {key:<12}{text}" for key, text in rows.items() if text]

    def to_json(self) -> str:
        """Return the text of the file; it is ASCII."""
        return json.dumps(self.model_dump(mode="json"), indent=1)

    def write(self, path: Path) -> None:
        """Write the file.

        Raises:
            ConfigError: The file exists, or is too large.
        """
        content = self.to_json().encode() + b"\n"
        if len(content) > MAX_BYTES:
            raise ConfigError(f"the invitation has {len(content):,} bytes, more than {MAX_BYTES:,}; use fewer names")
        write_file(path, content)


def make_invitation(
    config: RunConfig, vocabulary: Vocabulary, server: str, ca_pem: str, name: str = "", contact: str = ""
) -> Invitation:
    """Return the invitation to a run at a server.

    Raises:
        ConfigError: The address, the certificate or a text is invalid.
    """
    privacy = config.privacy.model_dump(include=set(InvitedPrivacy.model_fields))
    try:
        return Invitation(
            name=name or server.rpartition(":")[0].strip("[]"),
            server=server,
            ca_pem=ca_pem,
            task=config.task,
            method=config.method,
            catalogue=vocabulary.model_dump(mode="json"),
            privacy=InvitedPrivacy(**privacy),
            rounds=config.rounds,
            contact=contact,
            made=datetime.now(UTC).replace(microsecond=0),
        ).check_catalogue()
    except ValidationError as error:
        raise ConfigError(f"invalid invitation: {_explain(error)}") from None


def read_invitation(path: Path) -> Invitation:
    """Read an invitation of somebody else.

    Raises:
        ConfigError: The file is missing, a link, too large or malformed.
    """
    content = _read(path)
    try:
        return Invitation.model_validate_json(content).check_catalogue()
    except ConfigError as error:
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

    A missing key is created. The invitation sets address, authority and task, and nothing that the policy limits.

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
    name = client.name or default_name(fingerprint(public))
    note("the server's owner admits this client by\n  " + f"fedloom nodes add {to_word(public)} --name {name}")
    return replace(at, server=invitation.server, ca=authority, key=key), replace(client, task=invitation.task)


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
