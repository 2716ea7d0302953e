"""Formulas of signal temporal logic as immutable values (FedSTL, algorithms.md §3.1).

`Always(0, 1, x <= a)` with `x = Variable("volume")` is □_[0,1](volume ≤ a); its text is `G[0,1] (volume <= a)`. Times
are steps of a trace; windows are closed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, cast

from common.errors import ConfigError
from common.logic.expression import Expression, number_text

Relation = Literal["<=", ">=", "<", ">"]
Formula: TypeAlias = "Atom | Not | And | Or | Implies | Always | Eventually | Until"


@dataclass(frozen=True)
class Linear(Expression):
    """Expression that can be compared with a number or another expression: `x1 - x2 > 3`, `x1 >= x2`."""

    def __le__(self, bound: "float | Linear") -> "Atom":
        return self._compared("<=", bound)

    def __ge__(self, bound: "float | Linear") -> "Atom":
        return self._compared(">=", bound)

    def __lt__(self, bound: "float | Linear") -> "Atom":
        return self._compared("<", bound)

    def __gt__(self, bound: "float | Linear") -> "Atom":
        return self._compared(">", bound)

    def _compared(self, relation: Relation, bound: "float | Linear") -> "Atom":
        return Atom(self - bound, relation, 0.0) if isinstance(bound, Linear) else Atom(self, relation, float(bound))


def Variable(name: str) -> Linear:
    """Return a variable as an expression to compare: `Variable("volume") <= 310.5`."""
    return Linear(((name, 1.0),))


class _Connectives:
    """Operators of all formulas: `&`, `|` and `~`."""

    def __and__(self, other: Formula) -> "And":
        return And((cast(Formula, self), other))

    def __or__(self, other: Formula) -> "Or":
        return Or((cast(Formula, self), other))

    def __invert__(self) -> "Not":
        return Not(cast(Formula, self))

    def __bool__(self) -> bool:
        raise ConfigError("a formula has no truth value; join formulas by & and |, and write b <= x <= a as two atoms")


@dataclass(frozen=True)
class Atom(_Connectives):
    """Predicate over the readings of one step, such as `volume <= 310.5`.

    Raises:
        ConfigError: The bound is non-finite.
    """

    expression: Linear
    relation: Relation
    bound: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.bound):
            raise ConfigError(f"bound {self.bound} of {self.expression} is non-finite; use a finite number")

    def __str__(self) -> str:
        return f"{self.expression} {self.relation} {number_text(self.bound)}"


@dataclass(frozen=True)
class Not(_Connectives):
    """¬φ."""

    phi: Formula

    def __str__(self) -> str:
        return f"!({self.phi})"


@dataclass(frozen=True)
class _Joined(_Connectives):
    """Conjunction or disjunction of at least two formulas."""

    parts: tuple[Formula, ...]

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise ConfigError(f"'and' and 'or' join at least two formulas; this one has {len(self.parts)}")


@dataclass(frozen=True)
class And(_Joined):
    """φ₁ ∧ … ∧ φ_n."""

    def __str__(self) -> str:
        return " & ".join(map(_operand, self.parts))


@dataclass(frozen=True)
class Or(_Joined):
    """φ₁ ∨ … ∨ φ_n."""

    def __str__(self) -> str:
        return " | ".join(map(_operand, self.parts))


@dataclass(frozen=True)
class Implies(_Connectives):
    """φ → ψ, which is ¬φ ∨ ψ."""

    phi: Formula
    psi: Formula

    def __str__(self) -> str:
        return f"{_operand(self.phi)} -> {_operand(self.psi)}"


@dataclass(frozen=True)
class _Windowed(_Connectives):
    """Steps from a to b after the present, both included; raises ConfigError unless 0 ≤ a ≤ b."""

    a: int
    b: int

    def __post_init__(self) -> None:
        if self.a < 0 or self.b < self.a:
            raise ConfigError(f"window [{self.a},{self.b}] is empty or before step 0; write [a,b] with 0 <= a <= b")


@dataclass(frozen=True)
class _OfOne(_Windowed):
    phi: Formula
    letter: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.letter}[{self.a},{self.b}] ({self.phi})"


class Always(_OfOne):
    """□_[a,b] φ: φ at every step of the window."""

    letter = "G"


class Eventually(_OfOne):
    """◇_[a,b] φ: φ at some step of the window."""

    letter = "F"


@dataclass(frozen=True)
class Until(_Windowed):
    """φ U_[a,b] ψ: ψ at some t' of the window, and φ at every step from the present to t', both included."""

    phi: Formula
    psi: Formula

    def __str__(self) -> str:
        return f"({self.phi}) U[{self.a},{self.b}] ({self.psi})"


def conjunction(parts: Sequence[Formula]) -> Formula:
    """Return ⋀ parts; a single part is returned unchanged.

    Raises:
        ConfigError: `parts` is empty.
    """
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def horizon(phi: Formula) -> int:
    """Return the number of steps after the present that decide φ; a trace needs one reading more."""
    match phi:
        case Atom():
            return 0
        case Not(part):
            return horizon(part)
        case And(parts) | Or(parts):
            return max(map(horizon, parts))
        case Implies(left, right):
            return max(horizon(left), horizon(right))
        case Always(_, b, part) | Eventually(_, b, part):
            return b + horizon(part)
        case Until(_, b, left, right):
            return b + max(horizon(left), horizon(right))


def _operand(phi: Formula) -> str:
    return f"({phi})" if isinstance(phi, And | Or | Implies | Until) else str(phi)
