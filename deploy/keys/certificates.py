"""Certificate authority of a federation, and the server certificate that clients verify with it."""

import datetime
import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from common.door.identity import private_pem
from common.errors import ConfigError
from common.hosts import HERE, NAME
from deploy.files import write_file

AUTHORITY_DAYS, SERVER_DAYS = 3650, 365
_CLOCK_SLACK = datetime.timedelta(hours=1)  # valid also for clients whose clock is slightly behind


@dataclass(frozen=True)
class Certificates:
    """Files in a folder of certificates; `ca` is the one for clients."""

    folder: Path

    @property
    def ca(self) -> Path:
        """Certificate of the authority: public."""
        return self.folder / "ca.pem"

    @property
    def ca_key(self) -> Path:
        """Private key of the authority; its holder can impersonate the server."""
        return self.folder / "ca.key"

    @property
    def server(self) -> Path:
        """Certificate of the server."""
        return self.folder / "server.pem"

    @property
    def server_key(self) -> Path:
        """Private key of the server."""
        return self.folder / "server.key"


def make_authority(folder: Path) -> Certificates:
    """Create `ca.pem` and `ca.key` (0600) in `folder`, valid for `AUTHORITY_DAYS` days.

    Raises:
        ConfigError: One of them exists.
    """
    files, key = Certificates(folder), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fedloom certificate authority")])
    certificate = (
        _unsigned(name, name, key.public_key(), key.public_key(), AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(certificate_sign=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    write_file(files.ca_key, private_pem(key), mode=0o600)
    write_file(files.ca, certificate.public_bytes(serialization.Encoding.PEM))
    return files


def make_server_certificate(
    folder: Path, hosts: Sequence[str] = (), *, days: int = SERVER_DAYS, overwrite: bool = False
) -> Certificates:
    """Create `server.pem` and `server.key` (0600), signed by the authority in `folder`.

    Args:
        folder: Folder of `ca.pem` and `ca.key`.
        hosts: Names and addresses of the server for clients, in addition to localhost, 127.0.0.1 and ::1.
        days: Validity from now on; a negative number creates an expired certificate.
        overwrite: Replace an existing certificate; its names are kept if `hosts` is empty.

    Raises:
        ConfigError: There is no authority, a server certificate exists and `overwrite` is not set, or a host name is
            invalid.
    """
    files, key = Certificates(folder), ec.generate_private_key(ec.SECP256R1())
    previous = names_of(files.server) if overwrite and not hosts and files.server.exists() else ()
    certificate = certify(files, key.public_key(), dict.fromkeys((*HERE, *previous, *hosts)), days)
    write_file(files.server_key, private_pem(key), mode=0o600, overwrite=overwrite)
    write_file(files.server, certificate, overwrite=overwrite)
    return files


def certify(
    files: Certificates, key: ec.EllipticCurvePublicKey, hosts: Iterable[str], days: int = SERVER_DAYS
) -> bytes:
    """Return a certificate in PEM by which the holder of a key serves clients at these hosts.

    Raises:
        ConfigError: There is no authority, or a host name is invalid.
    """
    authority, authority_key = _load_authority(files)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fedloom server")])
    return (
        _unsigned(name, authority.subject, key, authority_key.public_key(), days)
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(certificate_sign=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )


def names_of(file: Path) -> tuple[str, ...]:
    """Return the names and addresses in the certificate of a server, the local ones first."""
    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return tuple(str(name.value) for name in names)


def normalize_host(host: str) -> str:
    """Return a host in the form of `names_of`."""
    return str(_general_name(host).value)


def _unsigned(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer_key: ec.EllipticCurvePublicKey,
    days: int,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    end = now + datetime.timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, end) - _CLOCK_SLACK)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )


def _usage(*, certificate_sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificate_sign,
        key_cert_sign=certificate_sign,
        crl_sign=certificate_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _load_authority(files: Certificates) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    try:
        certificate = x509.load_pem_x509_certificate(files.ca.read_bytes())
        key = serialization.load_pem_private_key(files.ca_key.read_bytes(), password=None)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{error.filename} is missing; create a certificate authority in {files.folder} first"
        ) from None
    except ValueError as error:
        raise ConfigError(f"{files.ca} or {files.ca_key} cannot be read ({error}); create a new authority") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(f"{files.ca_key} is not an elliptic-curve key; create a new authority")
    return certificate, key


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not NAME.fullmatch(host):
        raise ConfigError(
            f"'{host}' is not a host name; use its ASCII form (xn--…) or an address, without scheme and port"
        )
    return x509.DNSName(host)


def ensure_certificates(folder: Path, hosts: Sequence[str] = ()) -> Certificates:
    """Return the server's certificates in `folder`, created if missing.

    Raises:
        ConfigError: The server's certificate lacks one of the hosts.
    """
    files = Certificates(folder)
    if not files.ca.exists():
        make_authority(folder)
    if not files.server.exists():
        return make_server_certificate(folder, hosts)
    valid = names_of(files.server)
    if missing := [host for host in hosts if normalize_host(host) not in valid]:
        names = " ".join(f"--name {name}" for name in (*valid, *missing) if name not in HERE)
        raise ConfigError(f"{files.server} is not valid for '{missing[0]}'; run fedloom keys server --renew {names}")
    return files
