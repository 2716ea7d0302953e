"""Decomposition of a formula into a box and choices (FedSTL, algorithms.md §3.4).

A clause assigns an interval to some cells. A cell is a step and an axis; an axis is an expression that atoms compare.
Conjunctions stay apart; all other parts of a formula are expanded, up to a cap.

The plan is computed once per formula. The box holds the bounds of every satisfying trace. A choice (a ◇, an implication, an
until) is one of several clauses. L1 distances add up over cells, so choices that share no cell are independent. Choices
that share cells form a chain. A dynamic program decides a chain; its states are the chosen bounds on cells that later
choices may touch. The result is exact, and linear in the number of windows where the disjunctive normal form is
exponential.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import NoReturn, TypeAlias

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
    operands,
    with_operands,
)

OPPOSITE: dict[Relation, Relation] = {"<=": ">", ">": "<=", ">=": "<", "<": ">="}


def normal_form(phi: Formula, *, negated: bool = False) -> Formula:
    """Move negations into the atoms, and negate φ if asked; the result has no Not and no Implies.

    Truth and robustness are unchanged on every trace. ¬(φ U_[a,b] ψ) becomes ⋀_{k=a..b} (¬ψ at k, or ¬φ somewhere in [0, k]).
    """
    match phi:
        case Atom(expression, relation, bound):
            return Atom(expression, OPPOSITE[relation], bound) if negated else phi
        case Not(inner):
            return normal_form(inner, negated=not negated)
        case Implies(left, right):
            return normal_form(Or((Not(left), right)), negated=negated)
        case Until(a, b, left, right) if negated:
            broken, missed = normal_form(left, negated=True), normal_form(right, negated=True)
            return conjunction([Or((Always(k, k, missed), Eventually(0, k, broken))) for k in range(a, b + 1)])
    changed = tuple(normal_form(operand, negated=negated) for operand in operands(phi))
    match phi:
        case And() if negated:
            return Or(changed)
        case Or() if negated:
            return And(changed)
        case Always(a, b) if negated:
            return Eventually(a, b, *changed)
        case Eventually(a, b) if negated:
            return Always(a, b, *changed)
    return with_operands(phi, changed)


def atom_count(phi: Formula) -> int:
    """Return the number of atoms of φ with every window written out."""
    match phi:
        case Atom():
            return 1
        case Always(a, b) | Eventually(a, b):
            copies = b - a + 1
        case Until(_, b):
            copies = b + 1
        case _:
            copies = 1
    return copies * sum(map(atom_count, operands(phi)))


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
        """Yield the conjuncts of φ at t, each as its alternatives; empty if it cannot hold.

        Raises:
            ConfigError: A part has more alternatives than the cap.
        """
        match phi:
            case And(members):
                yield from chain.from_iterable(self.conjuncts(part, t) for part in members)
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
            case And(members):
                return reduce(self._both, (self._alternatives(part, t) for part in members))
            case Or(members):
                return self._pruned([clause for part in members for clause in self._alternatives(part, t)])
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
        joined = (a | {cell: bounds.meet(a.get(cell, FREE)) for cell, bounds in b.items()} for a in left for b in right)
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


ATOM_COMPARISONS = 100
"""Comparisons of alternatives that take as long as one atom of a written-out formula."""

Change: TypeAlias = tuple[Cell, Interval, Interval]
"""Cell, its interval before, and the narrower interval after."""


@dataclass(frozen=True)
class Arc:
    """Alternative of a choice: states before and after, and the cells that it binds."""

    before: int
    after: int
    changes: tuple[Change, ...]


Chain: TypeAlias = tuple[tuple[Arc, ...], ...]
"""Choices that share cells, in order of time; state 0 is the first and the last."""


@dataclass(frozen=True)
class Plan:
    """Decomposed formula; cells are steps and indices of `axes`."""

    axes: tuple[Linear, ...]
    box: Clause
    chains: tuple[Chain, ...]


def plan(phi: Formula, cap: int = CAP) -> Plan:
    """Decompose φ at time 0.

    Raises:
        ConfigError: No trace satisfies φ, or more than `cap` alternatives depend on each other. Also if different
            expressions bind one variable at one step, for which distances do not add up.
    """
    work, flat = Workload(cap), normal_form(phi)
    work.check(0, ATOM_COMPARISONS * atom_count(flat))
    expansion = Expansion(work)
    choices, box = _settle(list(expansion.conjuncts(flat)), {}, expansion.axes, work)
    chains = tuple(_chain(group, box, work) for group in _groups(choices))
    cells = set(box).union(*(clause for clauses in choices for clause in clauses))
    _refuse_entangled(cells, expansion.axes)
    return Plan(tuple(expansion.axes), box, chains)


def _settle(
    choices: list[list[Clause]], box: Clause, axes: list[Linear], work: Workload
) -> tuple[list[list[Clause]], Clause]:
    """Move bounds that all alternatives of a choice share into the box, until no choice has any."""
    while True:
        rest, forced = [], list[Clause]()
        for clauses in choices:
            work.check(0, len(clauses) ** 2)
            remaining = clauses if len(clauses) == 1 else _select_compatible(clauses, box)
            if not remaining:
                _refuse_contradiction("one of its parts contradicts the rest")
            if len(remaining) > 1:
                rest.append(remaining)
            forced.append(_common_bounds(remaining, box))
        if not any(forced):
            return rest, box
        choices, box = rest, _tighten(box, forced, axes)


def _tighten(box: Clause, forced: list[Clause], axes: list[Linear]) -> Clause:
    tight = dict(box)
    for clause in forced:
        for cell, interval in clause.items():
            tight[cell] = tight.get(cell, FREE).meet(interval)
            if tight[cell].empty:
                bounds = tight[cell]
                _refuse_contradiction(f"at step {cell[0]}, {axes[cell[1]]} from {bounds.lower} to {bounds.upper}")
    return tight


def _select_compatible(clauses: list[Clause], box: Clause) -> list[Clause]:
    """Return the clauses that can hold inside the box, reduced to their bounds beyond it.

    If the box satisfies a clause, the result is one empty clause.
    """
    left = []
    for clause in clauses:
        inside = {cell: interval.meet(box.get(cell, FREE)) for cell, interval in clause.items()}
        if not any(interval.empty for interval in inside.values()):
            left.append({cell: interval for cell, interval in inside.items() if interval != box.get(cell, FREE)})
    return prune(left)


def _common_bounds(clauses: list[Clause], box: Clause) -> Clause:
    """Return the bounds that all clauses require beyond the box."""
    shared = set(clauses[0]).intersection(*clauses)
    hulls = {cell: reduce(Interval.hull, (clause[cell] for clause in clauses)) for cell in shared}
    return {cell: hull for cell, hull in hulls.items() if not box.get(cell, FREE).within(hull)}


def _groups(choices: list[list[Clause]]) -> Iterable[list[list[Clause]]]:
    """Return choices grouped by shared cells, directly or through other choices; groups are in time order."""
    groups: list[tuple[set[Cell], list[list[Clause]]]] = []
    for clauses in choices:
        cells, members = set[Cell]().union(*clauses), [clauses]
        for group in [group for group in groups if not group[0].isdisjoint(cells)]:
            groups.remove(group)
            cells, members = cells | group[0], group[1] + members
        groups.append((cells, members))
    return [sorted(members, key=_last_and_first_step) for _, members in groups]


def _last_and_first_step(clauses: list[Clause]) -> tuple[int, int]:
    steps = [t for clause in clauses for t, _ in clause]
    return max(steps), min(steps)


def _chain(group: list[list[Clause]], box: Clause, work: Workload) -> Chain:
    last_use = {cell: j for j, clauses in enumerate(group) for clause in clauses for cell in clause}
    states, layers = [frozenset[tuple[Cell, Interval]]()], []
    for j, clauses in enumerate(group):
        numbers: dict[frozenset[tuple[Cell, Interval]], int] = {}
        arcs = []
        work.check(0, len(states) * len(clauses))
        for before, state in enumerate(states):
            for changes in _moves(dict(state), clauses, box):
                bound = dict(state) | {cell: after for cell, _, after in changes}
                alive = frozenset((cell, interval) for cell, interval in bound.items() if last_use[cell] > j)
                arcs.append(Arc(before, numbers.setdefault(alive, len(numbers)), changes))
        if not arcs:
            _refuse_contradiction("its alternatives exclude one another")
        work.check(len(numbers), 0)
        states = list(numbers)
        layers.append(tuple(arcs))
    return tuple(layers)


def _moves(state: Clause, clauses: list[Clause], box: Clause) -> list[tuple[Change, ...]]:
    """Return the changes of each alternative; if the state satisfies one, only the empty change."""
    held = box | state
    moves = []
    for clause in clauses:
        before = {cell: held.get(cell, FREE) for cell in clause}
        after = {cell: interval.meet(before[cell]) for cell, interval in clause.items()}
        if any(interval.empty for interval in after.values()):
            continue
        changes = tuple((cell, before[cell], new) for cell, new in after.items() if before[cell] != new)
        if not changes:
            return [()]
        moves.append(changes)
    return moves


def _refuse_entangled(cells: set[Cell], axes: list[Linear]) -> None:
    bound: defaultdict[tuple[int, str], set[int]] = defaultdict(set)
    for t, axis in cells:
        for name, _ in axes[axis].terms:
            bound[t, name].add(axis)
    for (t, name), numbers in bound.items():
        if len(numbers) > 1:
            both = " and ".join(f"'{axes[number]}'" for number in sorted(numbers))
            raise ConfigError(
                f"'{name}' is bound at step {t} through {both}; the teacher corrects a variable through one expression per "
                "step: split the formula"
            )


def _refuse_contradiction(where: str) -> NoReturn:
    raise ConfigError(f"no trace can satisfy this formula ({where}); check that lower bounds lie below upper bounds")
