"""Types of an invitation's fields, whose values come from somebody else."""

import re
from typing import Annotated, Any

from cryptography import x509
from pydantic import AfterValidator, StringConstraints

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
