"""What the teacher has to decide, worked out once per formula (FedSTL, algorithms.md §3.4).

A formula is a box (bounds that every satisfying trace obeys) and choices (a ◇, an implication, an until: one of several
clauses). L1 distances add up over cells, so choices that share no cell are independent; those that do form a chain, decided by
a dynamic programme whose states are the bounds chosen so far on cells that later choices may still touch. Exact, and linear in
the number of windows where the DNF is exponential.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import NoReturn, TypeAlias

from common.errors import ConfigError
from common.logic.clauses import CAP, FREE, Cell, Clause, Expansion, Interval, met, pruned, refuse_above
from common.logic.formula import Formula, Linear
from common.logic.normal import normal_form

Change: TypeAlias = tuple[Cell, Interval, Interval]
"""A cell, its interval before and the narrower one after."""


@dataclass(frozen=True)
class Arc:
    """One way to make one choice: from a state, to a state, and the cells that it binds."""

    before: int
    after: int
    changes: tuple[Change, ...]


Chain: TypeAlias = tuple[tuple[Arc, ...], ...]
"""Choices that hang together, in order of time; state 0 is the first and the last."""


@dataclass(frozen=True)
class Plan:
    """A formula taken apart; cells are steps and indices of `axes`."""

    axes: tuple[Linear, ...]
    box: Clause
    chains: tuple[Chain, ...]


def plan(phi: Formula, cap: int = CAP) -> Plan:
    """Take φ apart at time 0.

    Raises ConfigError if no trace satisfies φ, if more than `cap` alternatives hang together, or if a variable is bound twice
    at one step by different expressions (then distances do not add up).
    """
    expansion = Expansion(cap)
    choices, box = _settled(list(expansion.conjuncts(normal_form(phi))), {}, expansion.axes)
    chains = tuple(_chain(group, box, cap) for group in _groups(choices))
    cells = set(box).union(*(clause for clauses in choices for clause in clauses))
    _refuse_entangled(cells, expansion.axes)
    return Plan(tuple(expansion.axes), box, chains)


def _settled(choices: list[list[Clause]], box: Clause, axes: list[Linear]) -> tuple[list[list[Clause]], Clause]:
    """Move into the box what every way out of a choice asks for, until no choice asks for more than its own part."""
    while True:
        rest, forced = [], list[Clause]()
        for clauses in choices:
            left = clauses if len(clauses) == 1 else _compatible(clauses, box)
            if not left:
                _refuse_contradiction("one of its parts has no way to come true beside the others")
            if len(left) > 1:
                rest.append(left)
            forced.append(_common(left, box))
        if not any(forced):
            return rest, box
        choices, box = rest, _tightened(box, forced, axes)


def _tightened(box: Clause, forced: list[Clause], axes: list[Linear]) -> Clause:
    tight = dict(box)
    for clause in forced:
        for cell, interval in clause.items():
            tight[cell] = tight.get(cell, FREE).meet(interval)
            if tight[cell].empty:
                found = tight[cell]
                _refuse_contradiction(f"at step {cell[0]}, {axes[cell[1]]} from {found.lower} to {found.upper}")
    return tight


def _compatible(clauses: list[Clause], box: Clause) -> list[Clause]:
    """The clauses that can hold inside the box, reduced to what they ask beyond it; one empty clause if the box suffices."""
    left = []
    for clause in clauses:
        inside = {cell: interval.meet(box.get(cell, FREE)) for cell, interval in clause.items()}
        if not any(interval.empty for interval in inside.values()):
            left.append({cell: interval for cell, interval in inside.items() if interval != box.get(cell, FREE)})
    return pruned(left)


def _common(clauses: list[Clause], box: Clause) -> Clause:
    """What all the clauses ask for beyond the box."""
    shared = set(clauses[0]).intersection(*clauses)
    hulls = {cell: reduce(Interval.hull, (clause[cell] for clause in clauses)) for cell in shared}
    return {cell: hull for cell, hull in hulls.items() if not box.get(cell, FREE).within(hull)}


def _groups(choices: list[list[Clause]]) -> Iterable[list[list[Clause]]]:
    """Choices that share cells, directly or through others, each group in order of time."""
    groups: list[tuple[set[Cell], list[list[Clause]]]] = []
    for clauses in choices:
        cells, members = set[Cell]().union(*clauses), [clauses]
        for other_cells, others in [group for group in groups if not group[0].isdisjoint(cells)]:
            groups.remove((other_cells, others))
            cells, members = cells | other_cells, others + members
        groups.append((cells, members))
    return [sorted(members, key=_last_and_first_step) for _, members in groups]


def _last_and_first_step(clauses: list[Clause]) -> tuple[int, int]:
    steps = [t for clause in clauses for t, _ in clause]
    return max(steps), min(steps)


def _chain(group: list[list[Clause]], box: Clause, cap: int) -> Chain:
    last_use = {cell: j for j, clauses in enumerate(group) for clause in clauses for cell in clause}
    states, layers = [frozenset[tuple[Cell, Interval]]()], []
    for j, clauses in enumerate(group):
        numbers: dict[frozenset[tuple[Cell, Interval]], int] = {}
        arcs = []
        for before, state in enumerate(states):
            for changes in _moves(dict(state), clauses, box):
                bound = dict(state) | {cell: after for cell, _, after in changes}
                alive = frozenset((cell, interval) for cell, interval in bound.items() if last_use[cell] > j)
                arcs.append(Arc(before, numbers.setdefault(alive, len(numbers)), changes))
        if not arcs:
            _refuse_contradiction("its alternatives exclude one another")
        refuse_above(cap, len(numbers))
        states = list(numbers)
        layers.append(tuple(arcs))
    return tuple(layers)


def _moves(state: Clause, clauses: list[Clause], box: Clause) -> list[tuple[Change, ...]]:
    """Ways to make a choice from a state; where the state has it made already, doing nothing is the best of them."""
    held = box | state
    moves = []
    for clause in clauses:
        joined = {
            cell: (held.get(cell, FREE), interval) for cell, interval in met(held, clause).items() if cell in clause
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
                f"'{name}' is bound at step {t} through {both}: the teacher corrects a variable through one expression a "
                "step; split the formula"
            )


def _refuse_contradiction(where: str) -> NoReturn:
    raise ConfigError(f"no trace can satisfy this formula ({where}); check that lower bounds lie below upper bounds")
