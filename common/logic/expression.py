"""Weighted sums of named variables, the left side of a formula's atoms."""

import math
import re
from dataclasses import dataclass
from typing import Self

from common.errors import ConfigError

PLAIN_NAME = re.compile(r"[^\W\d][\w.]*")
"""Names that need no double quotes in a text."""


@dataclass(frozen=True)
class Expression:
    """Σ c_i x_i in written order.

    Raises:
        ConfigError: A name or a factor is unusable, a name is repeated, or no variable is left.
    """

    terms: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        if not self.terms:
            raise ConfigError(
                "the variables of this expression cancel out; write an expression that depends on a variable"
            )
        for name, factor in self.terms:
            if not name or '"' in name or "\n" in name:
                raise ConfigError(
                    f"variable name {name!r} is empty or contains quotes or line breaks; rename the variable"
                )
            if not math.isfinite(factor) or factor == 0:
                raise ConfigError(f"factor {factor} of {name} is 0 or non-finite; use a finite number other than 0")
        if len({name for name, _ in self.terms}) < len(self.terms):
            raise ConfigError("a variable occurs twice in an expression; name each variable once")

    def __add__(self, other: Self) -> Self:
        summed = dict(self.terms)
        for name, factor in other.terms:
            summed[name] = summed.get(name, 0.0) + factor
        return type(self)(tuple((name, factor) for name, factor in summed.items() if factor))

    def __mul__(self, factor: float) -> Self:
        return type(self)(tuple((name, float(factor) * c) for name, c in self.terms))

    __rmul__ = __mul__

    def __neg__(self) -> Self:
        return self * -1.0

    def __sub__(self, other: Self) -> Self:
        return self + -other

    def __str__(self) -> str:
        text = "".join(f" {'-' if c < 0 else '+'} {_term(name, abs(c))}" for name, c in self.terms)
        return text[3:] if text.startswith(" +") else "-" + text[3:]


def number_text(value: float) -> str:
    """Return the shortest text that is read back as the same number: `310.5`, `7`, `1e-06`."""
    return repr(float(value)).removesuffix(".0")


def _term(name: str, factor: float) -> str:
    shown = name if PLAIN_NAME.fullmatch(name) else f'"{name}"'
    return shown if factor == 1 else f"{number_text(factor)}*{shown}"
