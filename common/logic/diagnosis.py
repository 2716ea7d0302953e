"""Check of a formula that a user wrote: faults with their place in the text."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from common.errors import ConfigError
from common.logic.clauses import TooManyAlternativesError
from common.logic.formula import Always, And, Eventually, Formula, horizon
from common.logic.parse import Located, locate, refuse
from common.logic.plan import plan

CAP = 256
"""Maximum number of dependent alternatives of a user's formula: it is prepared within a second."""


@lru_cache(maxsize=16)
def read_formula(text: str, steps: int, variables: tuple[str, ...] = ()) -> Formula:
    """Return the formula of a text that traces of `steps` steps can satisfy.

    Args:
        text: Text of the formula.
        steps: Number of steps of a trace.
        variables: Names of the variables; empty: any.

    Raises:
        ConfigError: The text is no formula, needs more steps, names another variable, contradicts itself, or has more than
            `CAP` dependent alternatives. The column of the fault is named.
    """
    located = locate(text)
    _check_names(located.variables, variables)
    if horizon(located.formula) >= steps:
        column, needed = _longest(located.formula, located.columns), horizon(located.formula) + 1
        refuse(column, f"the formula has {needed} steps, but a forecast has {steps}; shorten its windows")
    try:
        plan(located.formula, CAP)
    except TooManyAlternativesError as error:
        refuse(1, str(error))
    except ConfigError as error:
        refuse(_place(located.formula, located), str(error))
    return located.formula


def _check_names(found: Mapping[str, int], variables: Sequence[str]) -> None:
    for name, column in sorted(found.items(), key=lambda item: item[1]):
        if variables and name not in variables:
            refuse(column, f"the federation measures {', '.join(variables)}; the formula names '{name}'")


def _longest(phi: Formula, columns: Mapping[int, int]) -> int:
    """Return the column of the part whose windows end last."""
    while isinstance(phi, And):
        phi = max(phi.parts, key=horizon)
    return columns.get(id(phi), 1)


def _place(phi: Formula, located: Located) -> int:
    """Return the column of the first conjunct with which φ cannot be planned."""
    if isinstance(phi, And):
        for k, part in enumerate(phi.parts):
            if not is_plannable(part):
                return _place(part, located)
            if k and not is_plannable(And(phi.parts[: k + 1])):
                return located.columns.get(id(part), 1)
    if isinstance(phi, Always | Eventually) and not is_plannable(phi.phi):
        return _place(phi.phi, located)
    return located.columns.get(id(phi), 1)


def is_plannable(phi: Formula) -> bool:
    """Return True if φ can be satisfied, with at most `CAP` dependent alternatives."""
    try:
        plan(phi, CAP)
    except ConfigError:
        return False
    return True
