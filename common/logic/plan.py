"""Decomposition of a formula into a box and choices (FedSTL, algorithms.md §3.4).

It is computed once per formula. The box holds the bounds of every satisfying trace. A choice (a ◇, an implication, an
until) is one of several clauses. L1 distances add up over cells, so choices that share no cell are independent. Choices
that share cells form a chain. A dynamic program decides a chain; its states are the chosen bounds on cells that later
choices may touch. The result is exact, and linear in the number of windows where the disjunctive normal form is
exponential.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import NoReturn, TypeAlias

from common.errors import ConfigError
from common.logic.formula import Formula, Linear
from common.logic.normal_forms import (
    CAP,
    FREE,
    Cell,
    Clause,
    Expansion,
    Interval,
    Workload,
    atom_count,
    intersect,
    normal_form,
    prune,
)

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
        joined = {
            cell: (held.get(cell, FREE), interval)
            for cell, interval in intersect(held, clause).items()
            if cell in clause
        }
        if any(interval.empty for _, interval in joined.values()):
            continue
        changes = tuple((cell, old, new) for cell, (old, new) in joined.items() if old != new)
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
