"""Terms of one secure sum, and canonical JSON, which digests and signatures cover. Pure."""

import base64
import binascii
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, cast

from common.errors import WireError
from common.privacy.vectors import Sign
from common.text import printable

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


def read_base64(text: str, what: str) -> bytes:
    """Return the bytes of a text in base64.

    Raises:
        WireError: The text is not base64; names `what`.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise WireError(f"{what} is not base64") from None


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


VERSION = 4
"""Version of masks, boxes and noise streams."""

MOST_NUMBERS = 4_000_000
"""Maximum size of a vector."""

MOST_CLIENTS = 100_000
"""Maximum number of clients in a sum."""

MOST_NOISE = 1 << 24
"""Standard deviations of noise are below this number of integer units."""

NOISED_BITS, EXACT_BITS = 61, 64
"""Bits of a mask's number with noise, and without.

Five masks of 61 bits and a number below 2²⁰ stay below 2⁶⁴, so that they add up as integers. They hide a vector x but for a
probability of |x|₁·2⁻⁶¹: 2⁻⁴⁴ of 10⁴ numbers, 2⁻³⁹ of 10⁶.
"""

LONGEST_RUN = 200
"""Maximum number of characters of a run's name."""

REPEATS = tuple(f"repeat/{k}" for k in range(1, 10))
"""Channels of repeats of a lost sum of channel `train`, in their order."""

_CHANNEL = re.compile(r"(train|repeat/[1-9])(/(0|[1-9][0-9]{0,2}))?|evaluate|names/[012]")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class SumTerms:
    """Terms of the sum of one round and one channel.

    Raises:
        WireError: A field is of another type, out of range, or contradicts another; names the field.
    """

    run: str
    """Name of the run."""
    round: int
    channel: str
    """`train`, `repeat/k`, both with `/g` for group g, `evaluate` or `names/k`: one sum each in a round."""
    size: int
    """d, number of numbers in a vector."""
    bits: int
    """k, bits of a mask's number: 61 with noise, 64 without."""
    bound: int
    """c, largest L2 norm of a vector in integers, with noise."""
    clip: float
    """C, clip norm of a vector, with noise."""
    sign: Sign
    """`positive` if no vector has a number below zero."""
    rho: float
    """μ²/2 of Gaussian DP that the sum costs each client; 0 without noise."""
    noise: int
    """s, standard deviation of one helper's noise in integer units; 0 without noise."""
    most: int
    """Maximum number of clients in the sum."""
    min_sum: int
    """Minimum number of clients in the sum, each of another owner as far as names state owners."""
    layout: tuple[tuple[str, int], ...]
    """Names and sizes of the vector's blocks, in their order."""
    roster: str
    """Digest of the run's roster."""
    keys: tuple[str, ...]
    """Card of each helper of the roster, with its key of now: a helper that starts again has another."""
    members: str
    """Digest of the list of members (`common.secure.members`), as it is or was."""
    version: int = VERSION

    def __post_init__(self) -> None:
        """Check every field."""
        for field in fields(self):
            value = getattr(self, field.name)
            kind = _KINDS[field.name] if field.name in _KINDS else cast(type[Any], field.type)
            if type(value) is not kind:
                raise WireError(f"terms: {field.name} is of type {type(value).__name__} instead of {kind.__name__}")
        for name, holds in _RULES.items():
            if not holds(self):
                raise WireError(f"terms: {name} is out of range or contradicts another field")

    @property
    def has_noise(self) -> bool:
        """True if helpers add noise to the sum."""
        return self.noise > 0

    @property
    def attempt(self) -> tuple[str, int]:
        """Channel of the sum and number of the repeat, 0 for the first: `repeat/k/g` is a repeat of `train/g`."""
        kind, *of = self.channel.split("/")
        return ("/".join(["train", *of[1:]]), int(of[0])) if kind == "repeat" else (self.channel, 0)

    @property
    def has_residues(self) -> bool:
        """True if the numbers are mod 2⁵² (`common.tasks.names`)."""
        return self.channel == "names/2"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal."""
        return digest(asdict(self))

    def to_json(self) -> str:
        """Return the terms as canonical JSON."""
        return canonical(asdict(self)).decode()

    @classmethod
    def from_json(cls, text: str) -> "SumTerms":
        """Parse the text of `to_json`.

        Raises:
            WireError: The text is no JSON, lacks a field or has an unknown one, or a field is invalid.
        """
        content = read_object(text, "terms")
        if content.get("version") != VERSION:
            raise WireError(f"terms: version {str(content.get('version'))[:20]} differs from {VERSION} here")
        names = {field.name for field in fields(cls)}
        if names != content.keys():
            differing = printable(", ".join(sorted(names ^ content.keys())), 100)
            raise WireError(f"terms: fields {differing} are missing or unknown")
        numbers = {name: read_float(content[name], f"terms: {name}") for name in ("clip", "rho")}
        keys = content["keys"] if isinstance(content["keys"], list) else []
        terms = cls(**{**content, **numbers, "layout": _read_layout(content["layout"]), "keys": tuple(keys)})
        if terms.to_json() != text:
            raise WireError("terms: not canonical JSON")
        return terms


_KINDS: dict[str, type[Any]] = {"sign": str, "layout": tuple, "keys": tuple}
"""Class of the values of fields whose annotation is no class."""

_RULES: dict[str, Callable[[SumTerms], bool]] = {
    "version": lambda terms: terms.version == VERSION,
    "run": lambda terms: 0 < len(terms.run) <= LONGEST_RUN and terms.run.isprintable(),
    "round": lambda terms: 0 <= terms.round < 1 << 31,
    "channel": lambda terms: _CHANNEL.fullmatch(terms.channel) is not None,
    "size": lambda terms: 1 <= terms.size <= MOST_NUMBERS,
    "bits": lambda terms: terms.bits == (NOISED_BITS if terms.has_noise else EXACT_BITS),
    "bound": lambda terms: int(terms.has_noise) <= terms.bound < 1 << (31 if terms.has_noise else 63),
    "clip": lambda terms: math.isfinite(terms.clip) and (terms.clip > 0 if terms.has_noise else terms.clip >= 0),
    "sign": lambda terms: terms.sign in ("signed", "positive"),
    "rho": lambda terms: math.isfinite(terms.rho) and (terms.rho > 0) == terms.has_noise and terms.rho >= 0,
    "noise": lambda terms: 0 <= terms.noise < (1 if terms.attempt[1] else MOST_NOISE),
    "most": lambda terms: terms.min_sum <= terms.most <= MOST_CLIENTS,
    "min_sum": lambda terms: terms.min_sum >= 2,
    "layout": lambda terms: _is_layout(terms.layout) and sum(size for _, size in terms.layout) == terms.size,
    "roster": lambda terms: _DIGEST.fullmatch(terms.roster) is not None,
    "keys": lambda terms: len(terms.keys) > 1 and all(type(one) is str for one in terms.keys),
    "members": lambda terms: _DIGEST.fullmatch(terms.members) is not None,
}


def _is_layout(layout: tuple[Any, ...]) -> bool:
    names = [block[0] for block in layout if type(block) is tuple and len(block) == 2 and type(block[0]) is str]
    sizes = [block[1] for block in layout if type(block) is tuple and len(block) == 2 and type(block[1]) is int]
    return len(layout) == len({*names}) == len(sizes) and all(size > 0 for size in sizes)


def _read_layout(content: object) -> tuple[tuple[str, int], ...]:
    if not isinstance(content, list) or not all(isinstance(block, list) for block in content):
        raise WireError("terms: layout is not a list of lists")
    return cast(tuple[tuple[str, int], ...], tuple(tuple(block) for block in content))
