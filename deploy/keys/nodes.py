"""Node keys of clients, and the server's folder `nodes/` with keys, revoked keys, names and tokens."""

import hashlib
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import tomli_w
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import AwareDatetime, BaseModel, ConfigDict, TypeAdapter

from common.errors import ConfigError
from common.node_names import (
    PREFIX,
    NamedKey,
    NodeKey,
    check_name,
    default_name,
    file_name,
    fingerprint,
    fresh_node_key,
    from_pem,
    from_word,
    locked,
    openssh_line,
    read_entries,
    read_names,
    write_names,
)
from deploy.files import read_file, write_file
from server.clients.ledger_heads import read_heads, write_heads


def public_path(path: Path) -> Path:
    """Return the path of the public half of the key at `path`: `node.key` -> `node.key.pub`."""
    return path.with_name(f"{path.name}.pub")


def make_node_key(path: Path, *, overwrite: bool = False) -> ec.EllipticCurvePublicKey:
    """Create a P-384 key: the private half at `path` (OpenSSH, 0600), the public half at `<path>.pub`.

    Raises:
        ConfigError: A key exists there and `overwrite` is not set; without its key a client is a new client.
    """
    key = fresh_node_key()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    write_file(path, private, mode=0o600, overwrite=overwrite)
    write_file(public_path(path), openssh_line(key.public_key()) + b"\n", overwrite=True)
    return key.public_key()


def load_private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Read a private key in OpenSSH format.

    Raises:
        ConfigError: The file is missing or is not an elliptic-curve private key.
    """
    try:
        key = serialization.load_ssh_private_key(read_file(path, "key file "), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(f"{path} is not a private key in OpenSSH format without password; create a new key") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(f"{path} is not an elliptic-curve key (ecdsa-sha2-nistp384); create a new key")
    return key


def load_public_key(path: Path) -> ec.EllipticCurvePublicKey:
    """Read a public key, one `ecdsa-sha2-nistp384 ...` line.

    Raises:
        ConfigError: The file is missing or is not an elliptic-curve public key.
    """
    return parse_public_key(read_file(path, "key file "), str(path))


def parse_public_key(line: bytes, origin: str) -> ec.EllipticCurvePublicKey:
    """Return the public key of one `ecdsa-sha2-nistp384 ...` line; `origin` is its origin, for messages.

    Raises:
        ConfigError: The line is not an elliptic-curve public key.
    """
    try:
        key = serialization.load_ssh_public_key(line)
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigError(f"{origin} is not a public key in OpenSSH format; use the file that ends in .pub") from None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ConfigError(f"{origin} is not an elliptic-curve key (ecdsa-sha2-nistp384); create a new key")
    return key


class KeyRefusedError(ConfigError):
    """Key that cannot be registered; the text holds no path."""


REVOKED = "revoked"
"""Folder below `nodes/` with the keys that stay refused."""


@dataclass(frozen=True)
class NodeEntry:
    """Key in the folder.

    Args:
        name: Name that is bound to the key; empty if none is.
        fingerprint: Fingerprint of the key; empty if the file holds none.
        state: Registered, revoked, or the file holds no key.
        file: File of the key.
        since: Time of registration or of revocation, ISO 8601.
        clients: Number of clients that the key may speak for; more than 1 for a hub.
    """

    name: str
    fingerprint: str
    state: Literal["registered", "revoked", "unreadable"]
    file: Path
    since: str
    clients: int = 1


def read_key(text: str) -> NodeKey:
    """Return the public key of a word `fl1:…`, a line of text or a file.

    Raises:
        ConfigError: There is no such key.
    """
    if text.startswith(PREFIX):
        return from_word(text)
    return (
        parse_public_key(text.encode(), "the given line") if text.startswith("ecdsa-") else load_public_key(Path(text))
    )


def add_key(nodes: Path, key: NodeKey, name: str = "", clients: int = 0) -> Path:
    """Register a key, and bind a name to it; return its file.

    A further name of the same key replaces the first.

    Args:
        nodes: Folder of the keys.
        key: Public key.
        name: Name of the key; empty keeps its name, or for a hub without one takes the default name of the key.
        clients: Number of clients that the key may speak for; 0 keeps its number, 1 for a new key.

    Raises:
        KeyRefusedError: The key was revoked, or the name belongs to another key.
        ConfigError: The file of names is damaged, or the name has another form.
    """
    with locked(nodes):
        return _add_key(nodes, key, name, clients)


def _add_key(nodes: Path, key: NodeKey, name: str, clients: int = 0) -> Path:
    mark = fingerprint(key)
    if any(entry.fingerprint == mark for entry in _entries(nodes / REVOKED, "revoked")):
        raise KeyRefusedError(f"key {mark} was revoked; let its owner create a new key with fedloom keys node")
    names = read_names(nodes)
    old = next((bound for bound, of in names.items() if of.fingerprint == mark), "")
    if name := name or old or (default_name(mark) if clients else ""):
        before = names.pop(old, NamedKey(fingerprint=mark))
        holder = names.setdefault(check_name(name), before if name == old else NamedKey(fingerprint=mark))
        if holder.fingerprint != mark:
            raise KeyRefusedError(
                f"name '{name}' belongs to key {holder.fingerprint}; choose another --name, or revoke that key with"
                f" fedloom nodes revoke {name}"
            )
        number = {"clients": clients or before.clients}
        write_names(nodes, names | {name: holder.model_copy(update=number)})
    files = (entry.file for entry in _entries(nodes, "registered") if entry.fingerprint == mark)
    target = next(files, nodes / f"{file_name(mark)}.pub")
    write_file(target, openssh_line(key) + b"\n", overwrite=True, waits=False)
    return target


DOORS = "doors"
"""Folder below `nodes/` with the keys of other doors, each with its certificate beside it (`*.pem`)."""


def door_certificate(nodes: Path | None, key: bytes) -> bytes:
    """Return the certificate of another door with this key, both in PEM; empty for any other key."""
    public = from_pem(key)
    if nodes is None or public is None:
        return b""
    file = nodes / DOORS / f"{file_name(fingerprint(public))}.pub"
    return certificate.read_bytes() if file.exists() and (certificate := file.with_suffix(".pem")).exists() else b""


TOKENS = "tokens.toml"
"""File in `nodes/` with the tokens of invitations."""

TOKEN_DAYS = 14
"""Days for which a token registers a key."""


class Token(BaseModel):
    """Token of a client's invitation, without the token itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str
    until: AwareDatetime


_TOKENS = TypeAdapter(dict[str, Token])


def make_token(nodes: Path, name: str, days: float = TOKEN_DAYS) -> str:
    """Return a one-time token by which a client registers its key under a name; it ends an earlier one.

    Raises:
        ConfigError: A key has the name, the name has another form, or a file is damaged.
    """
    token, now = secrets.token_urlsafe(18), datetime.now(UTC).replace(microsecond=0)
    with locked(nodes):
        if holder := read_names(nodes).get(check_name(name)):
            raise ConfigError(f"name '{name}' belongs to key {holder.fingerprint}; invite the client by another name")
        tokens = {of: one for of, one in _read_tokens(nodes).items() if one.until > now}
        _write_tokens(nodes, tokens | {name: Token(sha256=_digest(token), until=now + timedelta(days=days))})
    return token


def redeem_token(nodes: Path, token: str, key: NodeKey) -> str:
    """Register a key by a token, which then ends; return the key's name.

    Raises:
        KeyRefusedError: The token is unknown, used or expired, the key was revoked, or its name belongs to another key.
        ConfigError: A file is damaged.
    """
    digest = _digest(token)
    with locked(nodes):
        tokens = _read_tokens(nodes)
        name = next((name for name, one in tokens.items() if one.sha256 == digest), "")
        if not name:
            raise KeyRefusedError("the token of the invitation is unknown, or was used before")
        if tokens[name].until < datetime.now(UTC):
            raise KeyRefusedError("the token of the invitation has expired")
        _add_key(nodes, key, name)  # a crash before the next line lets no other key in, since the name is bound
        _write_tokens(nodes, {of: one for of, one in tokens.items() if of != name})
    return name


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _read_tokens(nodes: Path) -> dict[str, Token]:
    return read_entries(nodes / TOKENS, _TOKENS)


def _write_tokens(nodes: Path, tokens: dict[str, Token]) -> None:
    text = tomli_w.dumps({name: tokens[name].model_dump() for name in sorted(tokens)})
    write_file(nodes / TOKENS, text.encode(), mode=0o600, overwrite=True, waits=False)


def revoke_key(nodes: Path, name_or_fingerprint: str) -> NodeEntry:
    """Move a key to the revoked ones and free its name; return its former entry.

    Raises:
        ConfigError: No registered key has this name or fingerprint.
    """
    with locked(nodes):
        registered = [entry for entry in list_nodes(nodes) if entry.state == "registered"]
        found = [entry for entry in registered if name_or_fingerprint in (entry.name, entry.fingerprint)]
        if not found or not name_or_fingerprint:
            raise ConfigError(
                f"no registered key has the name or fingerprint {name_or_fingerprint[:80]!r}; see fedloom nodes list"
            )
        for entry in found:
            line = openssh_line(load_public_key(entry.file)) + f" {entry.name}".rstrip().encode() + b"\n"
            write_file(nodes / REVOKED / f"{file_name(entry.fingerprint)}.pub", line, overwrite=True, waits=False)
            entry.file.unlink()
        write_names(nodes, {name: key for name, key in read_names(nodes).items() if name != found[0].name})
    return found[0]


def forget_key(nodes: Path, name: str) -> str:
    """Delete the name of a forgotten client and the heads of its ledgers; return its fingerprint.

    The key is revoked, without a name. An empty text says that no key has the name.

    Raises:
        ConfigError: The file of names or of ledgers is damaged.
    """
    if not nodes.is_dir():
        return ""
    with locked(nodes):
        names = read_names(nodes)
        named = [entry for entry in list_nodes(nodes) if name and entry.name == name]
        marks = {entry.fingerprint for entry in named} | ({names[name].fingerprint} if name in names else set())
        for entry in named:
            line = openssh_line(load_public_key(entry.file)) + b"\n"
            write_file(nodes / REVOKED / f"{file_name(entry.fingerprint)}.pub", line, overwrite=True, waits=False)
            if entry.state == "registered":
                entry.file.unlink()
        write_names(nodes, {other: key for other, key in names.items() if other != name})
        if name in (tokens := _read_tokens(nodes)):
            _write_tokens(nodes, {other: one for other, one in tokens.items() if other != name})
        heads = read_heads(nodes)
        write_heads(nodes, {key: of for key, of in heads.items() if key.partition("#")[0] not in marks})
    return ", ".join(sorted(marks))


def rotate_key(nodes: Path, name: str, key: NodeKey) -> Path:
    """Give a name to a new key, and revoke its old one; return the new key's file.

    Raises:
        ConfigError: No key has the name, or the new key was revoked or is the old one.
    """
    holder = _holder(nodes, name)
    if holder.fingerprint == fingerprint(key):
        raise ConfigError(f"{name} has this key already; let its owner create a new key with fedloom keys node")
    add_key(nodes, key)
    revoke_key(nodes, name)
    return add_key(nodes, key, name, holder.clients)


def accept_ledger(nodes: Path, name: str) -> str:
    """Forget the ledgers of a client, or of all clients of a hub; return its fingerprint.

    Its next ledgers are accepted.

    Raises:
        ConfigError: No key has the name, or the file of ledgers is damaged.
    """
    with locked(nodes):
        mark = _holder(nodes, name).fingerprint
        write_heads(nodes, {key: heads for key, heads in read_heads(nodes).items() if key.partition("#")[0] != mark})
    return mark


def _holder(nodes: Path, name: str) -> NamedKey:
    holder = read_names(nodes).get(name)
    if holder is None:
        raise ConfigError(f"no key has the name {name[:80]!r}; see fedloom nodes list")
    return holder


def list_nodes(nodes: Path) -> list[NodeEntry]:
    """Return the keys of the folder: registered ones first, each by name.

    Raises:
        ConfigError: The file of names is damaged.
    """
    names = {key.fingerprint: (name, key.clients) for name, key in read_names(nodes).items()}
    registered = []
    for entry in _entries(nodes, "registered"):
        name, clients = names.get(entry.fingerprint, ("", 1))
        registered.append(replace(entry, name=name, clients=clients))
    return [*sorted(registered, key=lambda e: (e.name, e.fingerprint)), *_entries(nodes / REVOKED, "revoked")]


def revoked_keys(nodes: Path) -> dict[Path, NodeKey]:
    """Return the revoked keys by their files."""
    return {
        entry.file: load_public_key(entry.file) for entry in _entries(nodes / REVOKED, "revoked") if entry.fingerprint
    }


def _entries(folder: Path, state: Literal["registered", "revoked"]) -> list[NodeEntry]:
    """Return the entries of the files; the name of a revoked key is its comment."""
    entries = []
    for path in folder.glob("*.pub"):
        since = datetime.fromtimestamp(path.lstat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        try:
            mark = fingerprint(load_public_key(path))
        except ConfigError:
            entries.append(NodeEntry("", "", "unreadable", path, since))
            continue
        words = path.read_text("utf-8").split() if state == "revoked" else []
        entries.append(NodeEntry(words[2] if len(words) > 2 else "", mark, state, path, since))
    return sorted(entries, key=lambda e: (e.name, e.fingerprint))
