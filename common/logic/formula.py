"""Formulas of signal temporal logic as immutable values (FedSTL, algorithms.md §3.1).

`Always(0, 1, x <= a)` with `x = Variable("volume")` is □_[0,1](volume ≤ a); its text is `G[0,1] (volume <= a)`. Times
are steps of a trace; windows are closed.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, cast

from common.arrays import total_of
from common.errors import ConfigError

PLAIN_NAME = re.compile(r"[^\W\d][\w.]*")
"""Names that need no double quotes in a text."""


Relation = Literal["<=", ">=", "<", ">"]
Formula: TypeAlias = "Atom | Not | And | Or | Implies | Always | Eventually | Until"


@dataclass(frozen=True)
class Linear:
    """Σ c_i x_i in written order.

    Compared with a number or another expression, it is an atom: `x1 - x2 > 3`, `x1 >= x2`.

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

    def __add__(self, other: "Linear") -> "Linear":
        summed = dict(self.terms)
        for name, factor in other.terms:
            summed[name] = summed.get(name, 0.0) + factor
        return Linear(tuple((name, factor) for name, factor in summed.items() if factor))

    def __mul__(self, factor: float) -> "Linear":
        return Linear(tuple((name, float(factor) * c) for name, c in self.terms))

    __rmul__ = __mul__

    def __neg__(self) -> "Linear":
        return self * -1.0

    def __sub__(self, other: "Linear") -> "Linear":
        return self + -other

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

    def __str__(self) -> str:
        text = "".join(f" {'-' if c < 0 else '+'} {_term(name, abs(c))}" for name, c in self.terms)
        return text[3:] if text.startswith(" +") else "-" + text[3:]


def number_text(value: float) -> str:
    """Return the shortest text that is read back as the same number: `310.5`, `7`, `1e-06`."""
    return repr(float(value)).removesuffix(".0")


def _term(name: str, factor: float) -> str:
    shown = name if PLAIN_NAME.fullmatch(name) else f'"{name}"'
    return shown if factor == 1 else f"{number_text(factor)}*{shown}"


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

    members: tuple[Formula, ...]

    def __post_init__(self) -> None:
        if len(self.members) < 2:
            raise ConfigError(f"'and' and 'or' join at least two formulas; this one has {len(self.members)}")


@dataclass(frozen=True)
class And(_Joined):
    """φ₁ ∧ … ∧ φ_n."""

    def __str__(self) -> str:
        return " & ".join(map(_operand, self.members))


@dataclass(frozen=True)
class Or(_Joined):
    """φ₁ ∨ … ∨ φ_n."""

    def __str__(self) -> str:
        return " | ".join(map(_operand, self.members))


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


def conjunction(members: Sequence[Formula]) -> Formula:
    """Return ⋀ members; a single one is returned unchanged.

    Raises:
        ConfigError: `members` is empty.
    """
    return members[0] if len(members) == 1 else And(tuple(members))


def operands(phi: Formula) -> tuple[Formula, ...]:
    """Return the formulas that the operator of φ joins; none for an atom."""
    match phi:
        case Atom():
            return ()
        case And(members) | Or(members):
            return members
        case Not(inner) | Always(_, _, inner) | Eventually(_, _, inner):
            return (inner,)
        case Implies(left, right) | Until(_, _, left, right):
            return left, right


def with_operands(phi: Formula, changed: tuple[Formula, ...]) -> Formula:
    """Return the operator of φ, with its window, on other formulas; an atom is returned unchanged."""
    match phi:
        case Atom():
            return phi
        case And() | Or():
            return type(phi)(changed)
        case Not() | Implies():
            return type(phi)(*changed)
        case Always() | Eventually() | Until():
            return type(phi)(phi.a, phi.b, *changed)


def horizon(phi: Formula) -> int:
    """Return the number of steps after the present that decide φ; a trace needs one reading more."""
    last = phi.b if isinstance(phi, _Windowed) else 0
    return last + max(map(horizon, operands(phi)), default=0)


def _operand(phi: Formula) -> str:
    return f"({phi})" if isinstance(phi, And | Or | Implies | Until) else str(phi)


def rescaled(phi: Formula, mean: Mapping[str, float], std: Mapping[str, float]) -> Formula:
    """Return φ for traces z = (x − mean) / std: Σ w·x ≤ c becomes Σ (w·std)·z ≤ c − Σ w·mean.

    Robustness of φ on x is that of the result on z.
    """

    def on_z(atom: Atom) -> Atom:
        terms = atom.expression.terms
        shift = total_of(factor * mean[name] for name, factor in terms)
        return Atom(Linear(tuple((n, factor * std[n]) for n, factor in terms)), atom.relation, atom.bound - shift)

    return _map_atoms(phi, on_z)


def normalized(phi: Formula) -> Formula:
    """Return φ with every atom divided by the size of its first factor.

    `2*x - y <= 3` becomes `x - 0.5*y <= 1.5`.
    """

    def divide(atom: Atom) -> Atom:
        size = abs(atom.expression.terms[0][1])
        return Atom(atom.expression * (1 / size), atom.relation, atom.bound / size)

    return _map_atoms(phi, divide)


def with_digits(phi: Formula, digits: int) -> Formula:
    """Return φ with numbers of that many significant digits, for people."""

    def shorten(atom: Atom) -> Atom:
        terms = tuple((name, float(f"{factor:.{digits}g}")) for name, factor in atom.expression.terms)
        return Atom(Linear(terms), atom.relation, float(f"{atom.bound:.{digits}g}"))

    return _map_atoms(phi, shorten)


def _map_atoms(phi: Formula, change: Callable[[Atom], Atom]) -> Formula:
    if isinstance(phi, Atom):
        return change(phi)
    return with_operands(phi, tuple(_map_atoms(operand, change) for operand in operands(phi)))


STRICT = 1e-6
"""ε of strict predicates, in the units of the variables."""
