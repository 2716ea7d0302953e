"""Formulas as alternatives of boxes: the disjunctive normal form of one conjunct (FedSTL, algorithms.md §3.4).

A clause gives an interval to some cells; a cell is a step and an axis, an axis an expression that atoms compare. Only the
parts of a formula that are no conjunction are multiplied out, up to a cap.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import TypeAlias

from common.errors import ConfigError
from common.logic.formula import Always, And, Atom, Eventually, Formula, Implies, Linear, Not, Or, Relation, Until
from common.logic.margin import STRICT

Cell: TypeAlias = tuple[int, int]
"""A step and the index of an axis."""

CAP = 1024
"""Alternatives that one part of a formula may have."""


@dataclass(frozen=True)
class Interval:
    """The values from lower to upper, an open end not included."""

    lower: float = -math.inf
    upper: float = math.inf
    open_below: bool = False
    open_above: bool = False

    def meet(self, other: "Interval") -> "Interval":
        """What lies in both."""
        lower, open_below = max((self.lower, self.open_below), (other.lower, other.open_below))
        upper, closed_above = min((self.upper, not self.open_above), (other.upper, not other.open_above))
        return Interval(lower, upper, open_below, not closed_above)

    def hull(self, other: "Interval") -> "Interval":
        """The least interval that covers both."""
        lower, open_below = min((self.lower, self.open_below), (other.lower, other.open_below))
        upper, closed_above = max((self.upper, not self.open_above), (other.upper, not other.open_above))
        return Interval(lower, upper, open_below, not closed_above)

    def within(self, other: "Interval") -> bool:
        """Whether it is a part of the other."""
        return self.meet(other) == self

    @property
    def empty(self) -> bool:
        """Whether the margins of its open ends leave no value."""
        return self.lower + STRICT * self.open_below > self.upper - STRICT * self.open_above


FREE = Interval()
Clause: TypeAlias = dict[Cell, Interval]


class Expansion:
    """Turns formulas in negation normal form into clauses, and numbers the axes on the way."""

    def __init__(self, cap: int = CAP) -> None:
        self.axes: list[Linear] = []
        self._cap, self._numbers = cap, dict[frozenset[tuple[str, float]], int]()

    def conjuncts(self, phi: Formula, t: int = 0) -> Iterator[list[Clause]]:
        """The parts that must all hold at t, each as its alternatives; none where it cannot hold. Raises above the cap."""
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
                return pruned([clause for part in parts for clause in self._alternatives(part, t)])
            case Always(a, b, part):
                return reduce(self._both, (self._alternatives(part, t + k) for k in range(a, b + 1)))
            case Eventually(a, b, part):
                return pruned([clause for k in range(a, b + 1) for clause in self._alternatives(part, t + k)])
            case Until():
                return self._until(phi, t)
            case Not() | Implies():
                raise AssertionError("formulas come here in negation normal form")

    def _until(self, phi: Until, t: int) -> list[Clause]:
        held, found = [Clause()], list[Clause]()
        for k in range(phi.b + 1):
            held = self._both(held, self._alternatives(phi.phi, t + k))
            if k >= phi.a:
                found += self._both(held, self._alternatives(phi.psi, t + k))
        return pruned(found)

    def _both(self, left: list[Clause], right: list[Clause]) -> list[Clause]:
        refuse_above(self._cap, len(left) * len(right))
        joined = (met(a, b) for a in left for b in right)
        return pruned([clause for clause in joined if not any(interval.empty for interval in clause.values())])

    def _constraint(self, atom: Atom, t: int) -> tuple[Cell, Interval]:
        terms = atom.expression.terms
        turned = min(terms)[1] < 0
        axis = -atom.expression if turned else atom.expression
        number = self._numbers.setdefault(frozenset(axis.terms), len(self.axes))
        if number == len(self.axes):
            self.axes.append(axis)
        return (t, number), _interval(atom.relation, -atom.bound if turned else atom.bound, turned)


def _interval(relation: Relation, bound: float, turned: bool) -> Interval:
    """The values v with `v relation bound`; `turned` reads the relation from right to left."""
    strict = relation in ("<", ">")
    if (relation in ("<", "<=")) != turned:
        return Interval(upper=bound, open_above=strict)
    return Interval(lower=bound, open_below=strict)


def met(left: Clause, right: Clause) -> Clause:
    """The clause that asks for both."""
    return left | {cell: interval.meet(left.get(cell, FREE)) for cell, interval in right.items()}


def pruned(clauses: list[Clause]) -> list[Clause]:
    """The clauses without those that ask for more than another one does."""
    kept: list[Clause] = []
    for clause in sorted(clauses, key=len):
        if not any(_implies(clause, weaker) for weaker in kept):
            kept = [other for other in kept if len(other) < len(clause) or not _implies(other, clause)]
            kept.append(clause)
    return kept


def _implies(clause: Clause, weaker: Clause) -> bool:
    return all(cell in clause and clause[cell].within(interval) for cell, interval in weaker.items())


def refuse_above(cap: int, count: int) -> None:
    """Raise ConfigError if a formula has more alternatives than the cap."""
    if count > cap:
        raise ConfigError(
            f"this formula has {count:,} ways to come true that hang together, more than the cap of {cap:,}: "
            "use shorter or disjoint windows, or raise `cap`"
        )
