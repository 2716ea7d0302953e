"""Node keys of clients, and the server's folder `nodes/` with registered keys, revoked keys and names."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from common.errors import ConfigError
from common.node_names import (
    PREFIX,
    NamedKey,
    NodeKey,
    check_name,
    default_name,
    file_name,
    fingerprint,
    from_word,
    locked,
    openssh_line,
    read_names,
    write_names,
)
from deploy.files import write_file
from server.clients.ledger_heads import read_heads, write_heads


def public_path(path: Path) -> Path:
    """Return the path of the public half of the key at `path`: `node.key` -> `node.key.pub`."""
    return path.with_name(f"{path.name}.pub")


def make_node_key(path: Path, *, overwrite: bool = False) -> ec.EllipticCurvePublicKey:
    """Create a P-384 key: the private half at `path` (OpenSSH, 0600), the public half at `<path>.pub`.

    Raises:
        ConfigError: A key exists there and `overwrite` is not set; without its key a client is a new client.
    """
    key = ec.generate_private_key(ec.SECP384R1())
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
        key = serialization.load_ssh_private_key(_read(path), password=None)
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
    return parse_public_key(_read(path), str(path))


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


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read key file {path} ({error.strerror}); check the path") from None


REVOKED = "revoked"
"""Folder below `nodes/` with the keys that stay refused."""

MANY = 32
"""Number of nodes of one client each from which on a server gives advice."""

MANY_DIRECT = "64 direct clients take about 4 s a round; a hub takes 100 of them in one message (docs/howto/hubs.md)"
"""The advice; times as in docs/explanation/scale.md."""


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
        ConfigError: The key was revoked, or the name belongs to another key.
    """
    mark = fingerprint(key)
    with locked(nodes):
        if any(entry.fingerprint == mark for entry in _entries(nodes / REVOKED, "revoked")):
            raise ConfigError(f"key {mark} was revoked; let its owner create a new key with fedloom keys node")
        names = read_names(nodes)
        old = next((bound for bound, of in names.items() if of.fingerprint == mark), "")
        if name := name or old or (default_name(mark) if clients else ""):
            before = names.pop(old, NamedKey(fingerprint=mark))
            holder = names.setdefault(check_name(name), before if name == old else NamedKey(fingerprint=mark))
            if holder.fingerprint != mark:
                raise ConfigError(
                    f"name '{name}' belongs to key {holder.fingerprint}; choose another --name, or revoke that key with"
                    f" fedloom nodes revoke {name}"
                )
            number = {"clients": clients or before.clients}
            write_names(nodes, names | {name: holder.model_copy(update=number)})
        files = (entry.file for entry in _entries(nodes, "registered") if entry.fingerprint == mark)
        target = next(files, nodes / f"{file_name(mark)}.pub")
        write_file(target, openssh_line(key) + b"\n", overwrite=True)
    return target


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
            write_file(nodes / REVOKED / f"{file_name(entry.fingerprint)}.pub", line, overwrite=True)
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
            write_file(nodes / REVOKED / f"{file_name(entry.fingerprint)}.pub", line, overwrite=True)
            if entry.state == "registered":
                entry.file.unlink()
        write_names(nodes, {other: key for other, key in names.items() if other != name})
        heads = read_heads(nodes)
        write_heads(nodes, {key: of for key, of in heads.items() if key.partition("#")[0] not in marks})
    return ", ".join(sorted(marks))


def advice_on_many(nodes: Path) -> str:
    """Return advice for a server with many registered nodes of one client each; empty if they are few."""
    direct = sum(entry.state == "registered" and entry.clients == 1 for entry in list_nodes(nodes))
    return MANY_DIRECT if direct >= MANY else ""


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
