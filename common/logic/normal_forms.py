"""Negation and disjunctive normal forms of formulas (FedSTL, algorithms.md §3.4).

A clause assigns an interval to some cells. A cell is a step and an axis; an axis is an expression that atoms compare.
Conjunctions stay apart; all other parts of a formula are expanded, up to a cap.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import TypeAlias

from common.errors import ConfigError
from common.logic.formula import (
    STRICT,
    Always,
    And,
    Atom,
    Eventually,
    Formula,
    Implies,
    Linear,
    Not,
    Or,
    Relation,
    Until,
    conjunction,
)

OPPOSITE: dict[Relation, Relation] = {"<=": ">", ">": "<=", ">=": "<", "<": ">="}


def normal_form(phi: Formula) -> Formula:
    """Move negations into the atoms; the result has no Not and no Implies.

    Truth and robustness are unchanged on every trace.
    """
    match phi:
        case Atom():
            return phi
        case Not(part):
            return _negate(part)
        case And(parts):
            return And(tuple(map(normal_form, parts)))
        case Or(parts):
            return Or(tuple(map(normal_form, parts)))
        case Implies(left, right):
            return Or((_negate(left), normal_form(right)))
        case Always(a, b, part):
            return Always(a, b, normal_form(part))
        case Eventually(a, b, part):
            return Eventually(a, b, normal_form(part))
        case Until(a, b, left, right):
            return Until(a, b, normal_form(left), normal_form(right))


def _negate(phi: Formula) -> Formula:
    """Return ¬φ in normal form."""
    match phi:
        case Atom(expression, relation, bound):
            return Atom(expression, OPPOSITE[relation], bound)
        case Not(part):
            return normal_form(part)
        case And(parts):
            return Or(tuple(map(_negate, parts)))
        case Or(parts):
            return And(tuple(map(_negate, parts)))
        case Implies(left, right):
            return And((normal_form(left), _negate(right)))
        case Always(a, b, part):
            return Eventually(a, b, _negate(part))
        case Eventually(a, b, part):
            return Always(a, b, _negate(part))
        case Until():
            return _negate_until(phi)


def _negate_until(phi: Until) -> Formula:
    """Return ¬(φ U_[a,b] ψ) without a new operator: ⋀_{k=a..b} (¬ψ at k, or ¬φ somewhere in [0, k])."""
    left, right = _negate(phi.phi), _negate(phi.psi)
    return conjunction([Or((Always(k, k, right), Eventually(0, k, left))) for k in range(phi.a, phi.b + 1)])


def atom_count(phi: Formula) -> int:
    """Return the number of atoms of φ with every window written out."""
    match phi:
        case Atom():
            return 1
        case Not(part):
            return atom_count(part)
        case And(parts) | Or(parts):
            return sum(map(atom_count, parts))
        case Implies(left, right):
            return atom_count(left) + atom_count(right)
        case Always(a, b, part) | Eventually(a, b, part):
            return (b - a + 1) * atom_count(part)
        case Until(_, b, left, right):
            return (b + 1) * (atom_count(left) + atom_count(right))


Cell: TypeAlias = tuple[int, int]
"""Step and index of an axis."""

CAP = 1024
"""Maximum number of alternatives of one part of a formula."""

EFFORT = 6
"""Comparisons of alternatives that a plan may take, in units of the squared cap."""


@dataclass(frozen=True)
class Interval:
    """Values from lower to upper, without an open end."""

    lower: float = -math.inf
    upper: float = math.inf
    open_below: bool = False
    open_above: bool = False

    def meet(self, other: "Interval") -> "Interval":
        """Return the intersection of both intervals."""
        lower, open_below = max((self.lower, self.open_below), (other.lower, other.open_below))
        upper, closed_above = min((self.upper, not self.open_above), (other.upper, not other.open_above))
        return Interval(lower, upper, open_below, not closed_above)

    def hull(self, other: "Interval") -> "Interval":
        """Return the smallest interval that covers both."""
        lower, open_below = min((self.lower, self.open_below), (other.lower, other.open_below))
        upper, closed_above = max((self.upper, not self.open_above), (other.upper, not other.open_above))
        return Interval(lower, upper, open_below, not closed_above)

    def within(self, other: "Interval") -> bool:
        """Return True if this interval lies inside the other."""
        return self.meet(other) == self

    @property
    def empty(self) -> bool:
        """True if the margins of its open ends leave no value."""
        return self.lower + STRICT * self.open_below > self.upper - STRICT * self.open_above


FREE = Interval()
Clause: TypeAlias = dict[Cell, Interval]


class TooManyAlternativesError(ConfigError):
    """Formula whose alternatives exceed a cap."""


class Workload:
    """Count of the alternatives that the plan of one formula compares, against its cap."""

    def __init__(self, cap: int) -> None:
        self._cap, self._left = cap, EFFORT * cap**2

    def check(self, alternatives: int, comparisons: int) -> None:
        """Raise TooManyAlternativesError above the cap, or if all comparisons exceed their limit."""
        self._left -= comparisons
        if alternatives > self._cap or self._left < 0:
            counted = f"{alternatives:,} dependent" if alternatives > self._cap else "too many"
            raise TooManyAlternativesError(
                f"this formula has {counted} alternatives, more than the cap of {self._cap:,} allows;"
                " use shorter or disjoint windows"
            )


class Expansion:
    """Converter of formulas in negation normal form to clauses; numbers the axes it meets."""

    def __init__(self, work: Workload) -> None:
        self.axes: list[Linear] = []
        self._work, self._numbers = work, dict[frozenset[tuple[str, float]], int]()

    def conjuncts(self, phi: Formula, t: int = 0) -> Iterator[list[Clause]]:
        """Yield the parts that must all hold at t, each as its alternatives; empty if it cannot hold.

        Raises:
            ConfigError: A part has more alternatives than the cap.
        """
        match phi:
            case And(parts):
                yield from chain.from_iterable(self.conjuncts(part, t) for part in parts)
            case Always(a, b, part):
                yield from chain.from_iterable(self.conjuncts(part, t + k) for k in range(a, b + 1))
            case Eventually(a, b, part) if a == b:
                yield from self.conjuncts(part, t + a)
            case _:
                yield self._alternatives(phi, t)

    def _alternatives(self, phi: Formula, t: int) -> list[Clause]:
        match phi:
            case Atom():
                return [dict([self._constraint(phi, t)])]
            case And(parts):
                return reduce(self._both, (self._alternatives(part, t) for part in parts))
            case Or(parts):
                return self._pruned([clause for part in parts for clause in self._alternatives(part, t)])
            case Always(a, b, part):
                return reduce(self._both, (self._alternatives(part, t + k) for k in range(a, b + 1)))
            case Eventually(a, b, part):
                return self._pruned([clause for k in range(a, b + 1) for clause in self._alternatives(part, t + k)])
            case Until():
                return self._until(phi, t)
            case Not() | Implies():
                raise AssertionError("only formulas in negation normal form are expanded")

    def _until(self, phi: Until, t: int) -> list[Clause]:
        held, alternatives = [Clause()], list[Clause]()
        for k in range(phi.b + 1):
            held = self._both(held, self._alternatives(phi.phi, t + k))
            if k >= phi.a:
                alternatives += self._both(held, self._alternatives(phi.psi, t + k))
        return self._pruned(alternatives)

    def _both(self, left: list[Clause], right: list[Clause]) -> list[Clause]:
        self._work.check(len(left) * len(right), len(left) * len(right))
        joined = (intersect(a, b) for a in left for b in right)
        return self._pruned([clause for clause in joined if not any(interval.empty for interval in clause.values())])

    def _pruned(self, clauses: list[Clause]) -> list[Clause]:
        self._work.check(0, len(clauses) ** 2)
        return prune(clauses)

    def _constraint(self, atom: Atom, t: int) -> tuple[Cell, Interval]:
        terms = atom.expression.terms
        is_reversed = min(terms)[1] < 0
        axis = -atom.expression if is_reversed else atom.expression
        number = self._numbers.setdefault(frozenset(axis.terms), len(self.axes))
        if number == len(self.axes):
            self.axes.append(axis)
        return (t, number), _interval(atom.relation, -atom.bound if is_reversed else atom.bound, is_reversed)


def _interval(relation: Relation, bound: float, is_reversed: bool) -> Interval:
    """Return the values v with `v relation bound`; `is_reversed` reads the relation from right to left."""
    strict = relation in ("<", ">")
    if (relation in ("<", "<=")) != is_reversed:
        return Interval(upper=bound, open_above=strict)
    return Interval(lower=bound, open_below=strict)


def intersect(left: Clause, right: Clause) -> Clause:
    """Return the clause that requires both clauses."""
    return left | {cell: interval.meet(left.get(cell, FREE)) for cell, interval in right.items()}


def prune(clauses: list[Clause]) -> list[Clause]:
    """Return the clauses without those that another clause implies."""
    result: list[Clause] = []
    for clause in sorted(clauses, key=len):
        if not any(_implies(clause, weaker) for weaker in result):
            result = [weaker for weaker in result if len(weaker) < len(clause) or not _implies(weaker, clause)]
            result.append(clause)
    return result


def _implies(clause: Clause, weaker: Clause) -> bool:
    return all(cell in clause and clause[cell].within(interval) for cell, interval in weaker.items())
