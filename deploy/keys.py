"""Node keys: the key pair by which a client proves that the server's owner has registered it."""

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from common.errors import ConfigError
from common.node_keys import openssh_line
from deploy.files import write_file


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


def parse_public_key(line: bytes, place: str) -> ec.EllipticCurvePublicKey:
    """Return the public key of one `ecdsa-sha2-nistp384 ...` line; `place` is its origin, for messages.

    Raises:
        ConfigError: The line is not an elliptic-curve public key.
    """
    try:
        key = serialization.load_ssh_public_key(line)
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigError(f"{place} is not a public key in OpenSSH format; use the file that ends in .pub") from None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ConfigError(f"{place} is not an elliptic-curve key (ecdsa-sha2-nistp384); create a new key")
    return key


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read key file {path} ({error.strerror}); check the path") from None
