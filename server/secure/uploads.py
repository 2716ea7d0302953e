"""Masked uploads of clients: validation."""

from dataclasses import dataclass

from common.errors import WireError
from common.secure.masking import BOX, dtype_of
from common.secure.terms import SumTerms
from common.wire.sums import SumReply
from server.aggregation.round_results import Load

BOX_TEXT = (BOX + 2) // 3 * 4
"""Number of characters of a sealed box."""

BESIDE = 100_000
"""Bytes of an upload beside numbers and boxes: names of fields, and room for later ones."""


@dataclass(frozen=True)
class Upload:
    """Masked vector of a client, with its seeds sealed to each helper of the roster."""

    load: Load
    """Return the vector as array `sum`, from memory or from disk."""
    boxes: tuple[str, ...]
    steps: int = 0
    """Number of local steps; 0 in sums of other values than updates."""


def limit_upload(terms: SumTerms, helpers: int) -> int:
    """Return the largest size of an upload in bytes."""
    return terms.size * terms.bits // 8 + helpers * 2 * BOX_TEXT + BESIDE


def check_upload(reply: SumReply, terms: SumTerms, helpers: int) -> Upload:
    """Return the upload of a reply.

    Raises:
        WireError: The numbers are missing, of another dtype or size, or the boxes are of another number or size.
    """
    numbers = reply.masked.get("sum")
    if numbers is None or reply.masked.keys() != {"sum"}:
        raise WireError("reply has no masked numbers")
    if numbers.dtype != dtype_of(terms.bits) or numbers.shape != (terms.size,):
        found = f"{numbers.dtype}{list(numbers.shape)}"
        raise WireError(f"masked numbers are {found}, expected uint{terms.bits}[{terms.size}]")
    if len(reply.sealed) != helpers or any(not isinstance(b, str) or len(b) != BOX_TEXT for b in reply.sealed):
        raise WireError(f"reply has no box of {BOX_TEXT} characters for each of {helpers} helpers")
    masked = {"sum": numbers}
    return Upload(lambda: masked, tuple(reply.sealed))
