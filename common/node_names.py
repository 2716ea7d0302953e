"""Public keys of nodes and the names that belong to them, stored in `nodes/names.toml`."""

import base64
import binascii
import fcntl
import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import tomli_w
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from common.errors import ConfigError
from common.files import write_atomically

NodeKey = ec.EllipticCurvePublicKey

PREFIX = "fl1:"
"""Start of a public key in one word."""

_CURVES: dict[int, ec.EllipticCurve] = {33: ec.SECP256R1(), 49: ec.SECP384R1(), 67: ec.SECP521R1()}
"""Length of a compressed point in bytes -> its curve."""

_FILE_CHARACTERS = str.maketrans("+/=", "___")
"""Replaces the characters of a fingerprint that file names and public names lack."""


def openssh_line(key: NodeKey) -> bytes:
    """Return the key as one line of text, as in a file `*.pub`."""
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)


def fingerprint(key: NodeKey) -> str:
    """Return the key's fingerprint `SHA256:…`, as `ssh-keygen -lf` prints it."""
    blob = base64.b64decode(openssh_line(key).split()[1])
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def fresh_node_key() -> ec.EllipticCurvePrivateKey:
    """Return a new private key of a node."""
    return ec.generate_private_key(ec.SECP384R1())


def simulated_node_key(name: str) -> ec.EllipticCurvePrivateKey:
    """Return a private key that follows from a client's name, for simulations; it protects nothing."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest(), "big")
    return ec.derive_private_key(seed + 1, ec.SECP384R1())


def file_name(fingerprint: str) -> str:
    """Return a fingerprint in characters of a file name."""
    return fingerprint.removeprefix("SHA256:").translate(_FILE_CHARACTERS)


def default_name(fingerprint: str) -> str:
    """Return the public name of a client whose owner chose none."""
    return f"node-{file_name(fingerprint)[:12]}"


def to_word(key: NodeKey) -> str:
    """Return the key in one word, `fl1:` and the compressed point in URL-safe base64."""
    point = key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint)
    return PREFIX + base64.urlsafe_b64encode(point).decode().rstrip("=")


def from_word(word: str) -> NodeKey:
    """Return the key of a word by `to_word`.

    Raises:
        ConfigError: The word is no such key.
    """
    text = word.strip().removeprefix(PREFIX)
    try:
        point = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return ec.EllipticCurvePublicKey.from_encoded_point(_CURVES[len(point)], point)
    except (binascii.Error, ValueError, KeyError):
        raise ConfigError(f"{word[:80]!r} is not a public key; copy the whole word {PREFIX}… of the client") from None


def to_pem(key: NodeKey) -> bytes:
    """Return the key as a PEM text; inverse of `from_pem`."""
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def from_pem(pem: bytes) -> NodeKey | None:
    """Return the elliptic-curve key of a PEM text; None if it holds none."""
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, ec.EllipticCurvePublicKey) else None


FILE = "names.toml"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Form of a public name."""
NODE_NAME = re.compile(rf"{NAME.pattern}(?:@{NAME.pattern})?")
"""Form of the public name of a node, with the name of its owner behind an @ if that has several."""
HOSTED_NAME = re.compile(rf"(?P<hub>{NAME.pattern})/{NAME.pattern}")
"""Form of the public name of a hub's client; it belongs to the key that the hub's name belongs to."""


class NamedKey(BaseModel):
    """Key that a name belongs to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fingerprint: str = Field(pattern=r"^SHA256:[A-Za-z0-9+/]{43}$")
    """Fingerprint of the public key."""

    added: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    """Time of the binding."""

    clients: int = Field(default=1, ge=1)
    """Number of clients that the key may speak for; more than 1 for a hub."""


Entry = TypeVar("Entry")

_FORM = TypeAdapter(dict[str, NamedKey])


def read_entries(path: Path, form: TypeAdapter[dict[str, Entry]]) -> dict[str, Entry]:
    """Return name -> entry of a TOML file; nothing without the file.

    Raises:
        ConfigError: The file is damaged.
    """
    try:
        return form.validate_python(tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise ConfigError(f"{path} cannot be read ({str(error).splitlines()[0]}); correct or remove it") from None


def read_names(folder: Path) -> dict[str, NamedKey]:
    """Return name -> key from the file in the folder; nothing without the file.

    Raises:
        ConfigError: The file is damaged, a name is invalid or a key has two names.
    """
    path = folder / FILE
    names = read_entries(path, _FORM)
    keys = [key.fingerprint for key in names.values()]
    if wrong := next((name for name in names if not NODE_NAME.fullmatch(name)), None):
        raise ConfigError(f"{path} holds the invalid name {wrong[:80]!r}; use letters, digits, '.', '_' and '-'")
    if double := next((key for key in keys if keys.count(key) > 1), None):
        raise ConfigError(f"{path} gives key {double} two names; remove one of them")
    return names


def write_names(folder: Path, names: Mapping[str, NamedKey]) -> None:
    """Replace the file in the folder."""
    hidden = {name: {"clients"} if key.clients == 1 else set() for name, key in names.items()}
    stored = {name: names[name].model_dump(exclude=hidden[name]) for name in sorted(names)}
    write_atomically(folder / FILE, tomli_w.dumps(stored).encode(), mode=0o600)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out while files of the folder change."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def check_name(name: str) -> str:
    """Return a public name of a node that has the right form.

    Raises:
        ConfigError: It has another form.
    """
    if not NODE_NAME.fullmatch(name):
        raise ConfigError(
            f"invalid name {name[:80]!r}; use up to 64 letters, digits, '.', '_' and '-', starting with a letter or digit"
        )
    return name


def owner_of(name: str) -> str:
    """Return the owner that a client's name states, NAME@OWNER; without one the client is its own."""
    return name.partition("@")[2] or name
