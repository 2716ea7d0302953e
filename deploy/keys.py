"""Node keys: the pair by which a client proves to be one that the server's owner has registered."""

import base64
import hashlib
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from common.errors import ConfigError
from deploy.files import write_file


def public_path(path: Path) -> Path:
    """Where the public half of the key at `path` lies: `node.key` -> `node.key.pub`."""
    return path.with_name(f"{path.name}.pub")


def make_node_key(path: Path, *, overwrite: bool = False) -> ec.EllipticCurvePublicKey:
    """Make a P-384 key: the private half at `path` (OpenSSH format, 0600), the public half at `<path>.pub`.

    Raises:
        ConfigError: A key exists there and `overwrite` is not set: losing it would make this client a new one.
    """
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    write_file(path, private, mode=0o600, overwrite=overwrite)
    write_file(public_path(path), _public_line(key.public_key()) + b"\n", overwrite=True)
    return key.public_key()


def load_private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Read a private key in OpenSSH format.

    Raises:
        ConfigError: The file is missing or holds no elliptic-curve private key.
    """
    try:
        key = serialization.load_ssh_private_key(_read(path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(f"{path} holds no private key in OpenSSH format without password: make one anew") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(f"{path} is not an elliptic-curve key (ecdsa-sha2-nistp384): make one anew")
    return key


def load_public_key(path: Path) -> ec.EllipticCurvePublicKey:
    """Read a public key, one `ecdsa-sha2-nistp384 ...` line.

    Raises:
        ConfigError: The file is missing or holds no elliptic-curve public key.
    """
    try:
        key = serialization.load_ssh_public_key(_read(path))
    except (ValueError, UnsupportedAlgorithm):
        hint = "is it the private half? the public one ends in .pub"
        raise ConfigError(f"{path} holds no public key in OpenSSH format ({hint})") from None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ConfigError(f"{path} is not an elliptic-curve key (ecdsa-sha2-nistp384): make one anew")
    return key


def fingerprint(key: ec.EllipticCurvePublicKey) -> str:
    """The key's name: `SHA256:…`, as `ssh-keygen -lf` prints it."""
    blob = base64.b64decode(_public_line(key).split()[1])
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _public_line(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"key file {path}: {error.strerror}") from None
