"""Texts of quantities and of mistyped names, and texts of others made printable."""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence

ESCAPE_SEQUENCE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(\x07|\x1b\\)?|.)?", re.DOTALL)
"""Terminal escape sequence: CSI, a string such as OSC up to its end, or two characters."""


_UNITS = ("B", "kB", "MB", "GB", "TB")


def count(number: int, noun: str) -> str:
    """Return a quantity with its noun: `1 client`, `2 clients`, `1,200 clients`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


ZERO_WIDTH = re.compile("[\u200b-\u200d\u2060\ufeff]")
"""Characters without width that hide in names: spaces, joiners and byte-order marks."""


def one_name(text: str) -> str:
    """Return the one form of a name: composed Unicode (NFC), trimmed, without characters of zero width."""
    return text.strip() if text.isascii() else ZERO_WIDTH.sub("", unicodedata.normalize("NFC", text)).strip()


def printable(text: str, longest: int = 300) -> str:
    """Return a text of someone else as one line that terminals and files can hold.

    Escape sequences and control characters become `�`; line breaks and other blanks become spaces. A text of more than
    `longest` characters ends in `…`.
    """
    shown = ESCAPE_SEQUENCE.sub("�", text[: 4 * longest])
    shown = "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in shown)
    return shown if len(shown) <= longest and len(text) <= 4 * longest else f"{shown[: longest - 1]}…"


MAX_NAMES = 8
"""Clients that are named in one line."""


def few(names: Sequence[str]) -> str:
    """Return names in one line, with the number of those beyond `MAX_NAMES`."""
    return ", ".join(names[:MAX_NAMES]) + (f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else "")


def by_reason(reasons: Iterable[tuple[str, str]]) -> list[str]:
    """Return each reason once, behind its clients; those that differ in numbers alone are one."""
    alike: dict[str, dict[str, str]] = {}
    for name, reason in reasons:
        alike.setdefault(re.sub(r"\d[\d.,e+-]*", "", reason), {})[printable(name, 80)] = reason
    shared = [(few([*names]), [*dict.fromkeys(names.values())]) for names in alike.values()]
    return [f"{names}: {first}{', and the like' * bool(others)}" for names, (first, *others) in shared]


def meant(value: str, choices: Iterable[str]) -> str:
    """Return the end of a message on a mistyped value: the closest choice, or all choices."""
    choices = list(choices)
    return hint(value, choices, cutoff=0.4) or f"; choose one of {', '.join(choices)}"


def hint(value: str, choices: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the end of a message on an unknown value: the closest choice, or nothing if none is close."""
    closest = difflib.get_close_matches(value, list(choices), n=1, cutoff=cutoff)
    return f"; did you mean '{closest[0]}'?" if closest else ""


def size(count: float) -> str:
    """Return bytes with three significant digits in decimal units: `412 kB`."""
    power = 0
    while count >= 999.5 and power < len(_UNITS) - 1:
        count, power = count / 1000, power + 1
    digits = 0 if power == 0 or count >= 99.95 else 1
    return f"{count:.{digits}f} {_UNITS[power]}"
