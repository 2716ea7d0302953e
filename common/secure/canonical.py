"""Canonical JSON: equal content has equal bytes, so that digests and signatures can cover it. Pure."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from common.errors import WireError

LONGEST = 1_000_000
"""Maximum length of a canonical text that is parsed, in characters."""


def canonical(content: Any) -> bytes:
    """Return content as JSON with sorted keys and without spaces; a float is its hexadecimal text."""
    return json.dumps(_exact(content), sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest(content: Any) -> str:
    """Return the SHA-256 of content in canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(content)).hexdigest()


def read_object(text: str, what: str) -> dict[str, Any]:
    """Return the JSON object of a text.

    Raises:
        WireError: The text is too long or no JSON object; names `what`.
    """
    try:
        content = json.loads(text) if len(text) <= LONGEST else None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise WireError(f"{what}: not a JSON object")
    return content


def read_float(text: object, what: str) -> float:
    """Return the number of a text by `float.hex`.

    Raises:
        WireError: The text is no such number; names `what`.
    """
    try:
        number = float.fromhex(text) if isinstance(text, str) else float("nan")
    except (ValueError, OverflowError):
        number = float("nan")
    if not isinstance(text, str) or number.hex() != text:
        raise WireError(f"{what}: not a number in hexadecimal")
    return number


def _exact(content: Any) -> Any:
    match content:
        case float():
            return content.hex()
        case Mapping():
            return {key: _exact(value) for key, value in content.items()}
        case list() | tuple():
            return [_exact(value) for value in content]
        case _:
            return content
