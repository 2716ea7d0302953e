"""Certificates of nodes, by which TLS lets them in at the door.

Two authorities certify keys of nodes for one server. The first follows from the server's `ca.pem`, which an invitation holds. A
node certifies its key under it by itself, to ask for admission: so a stranger ends in the TLS handshake, and a handshake proves
the node's key. The second follows from the server's private key. Its certificates open the door, and expire. The list of
registered keys decides everything else.
"""

import datetime
from dataclasses import dataclass, field
from functools import cached_property

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from common.node_names import NodeKey, from_pem, to_pem

CURVE = ec.SECP256R1()
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Order of the curve's group."""

START, END = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)
"""Validity of authorities and newcomers' certificates: always, for a wrong clock to keep no node away."""


@dataclass(frozen=True)
class Authority:
    """Authority that certifies keys of nodes for one server.

    Args:
        name: Its name; OpenSSL finds the authority of a certificate by it.
        key: Its private key.
    """

    name: str
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @cached_property
    def pem(self) -> bytes:
        """Its own certificate in PEM."""
        return self._certify(self.name, self.key.public_key(), END, is_authority=True)

    def certify(self, key: ec.EllipticCurvePublicKey, until: datetime.datetime = END) -> bytes:
        """Return a certificate in PEM for a node's key."""
        return self._certify("fedloom node", key, until, is_authority=False)

    def has_issued(self, certificate: x509.Certificate) -> bool:
        """Return True if this authority, and no other, has signed the certificate."""
        try:
            certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(self.pem))
        except (InvalidSignature, ValueError, TypeError):
            return False
        return True

    def _certify(
        self, subject: str, key: ec.EllipticCurvePublicKey, until: datetime.datetime, *, is_authority: bool
    ) -> bytes:
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        unsigned = (
            x509.CertificateBuilder()
            .subject_name(_name(subject))
            .issuer_name(_name(self.name))
            .public_key(key)
            .serial_number(1 if is_authority else x509.random_serial_number())
            .not_valid_before(START)
            .not_valid_after(until)
            .add_extension(x509.BasicConstraints(is_authority, 0 if is_authority else None), critical=True)
        )
        unsigned = unsigned if is_authority else unsigned.add_extension(usage, critical=False)
        return unsigned.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def newcomers_of(ca: bytes) -> Authority:
    """Return the authority that follows from a server's `ca.pem`.

    Raises:
        ValueError: The text has no certificate.
    """
    der = x509.load_pem_x509_certificate(ca).public_bytes(serialization.Encoding.DER)
    return Authority("fedloom nodes of one server", _derive(der, b"fedloom.door.v1 nodes"))


def issuer_of(server_key: bytes) -> Authority:
    """Return the authority that follows from a server's private key; its certificates end with the key.

    Raises:
        ValueError: The text has no private key.
    """
    private = serialization.load_pem_private_key(server_key, password=None)
    der = private.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Authority("fedloom nodes admitted by one server", _derive(der, b"fedloom.door.v2 issuer"))


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key in PEM, as TLS takes it."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def node_certificate(ca: bytes, key: ec.EllipticCurvePrivateKey) -> tuple[bytes, bytes]:
    """Return the private key of a newcomer, and its certificate for the server with this CA, in PEM."""
    return private_pem(key), newcomers_of(ca).certify(key.public_key())


def certified_key(certificate: bytes) -> bytes:
    """Return the public key of a node's certificate, both in PEM; empty if it is no key of a node."""
    try:
        key = x509.load_pem_x509_certificate(certificate).public_key()
    except ValueError:
        return b""
    return to_pem(key) if isinstance(key, ec.EllipticCurvePublicKey) else b""


def plain_key(pem: bytes) -> bytes:
    """Return a public key that a client without encryption names, in the form of `certified_key`."""
    key: NodeKey | None = from_pem(pem)
    return to_pem(key) if key else b""


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _derive(secret: bytes, purpose: bytes) -> ec.EllipticCurvePrivateKey:
    derived = HKDF(hashes.SHA256(), 48, None, purpose).derive(secret)
    return ec.derive_private_key(int.from_bytes(derived, "big") % (ORDER - 1) + 1, CURVE)
