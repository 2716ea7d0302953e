"""Public keys of nodes: fingerprint, default name, and the one-word form that an owner copies."""

import base64
import binascii
import hashlib

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from common.errors import ConfigError

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
