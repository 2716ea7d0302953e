"""Formula of signal temporal logic in words."""

from functools import partial

from common.logic.expression import number_text
from common.logic.formula import Always, And, Atom, Eventually, Formula, Implies, Not, Or, Until
from common.tasks.traffic.vocabulary import DAY
from deploy.tasks.traffic.clock import Stretch

RELATIONS = {"<=": "is at most", ">=": "is at least", "<": "is below", ">": "is above"}


def describe_formula(phi: Formula, step: int, *, at_midnight: bool) -> str:
    """Return φ as a clause of a sentence.

    Args:
        phi: Formula.
        step: Seconds between readings.
        at_midnight: True if reading 0 is that at midnight; times are then of the clock.
    """
    return _words(phi, step if at_midnight and DAY % step == 0 else 0, top=True)


def _words(phi: Formula, step: int, *, top: bool) -> str:
    inner = partial(_words, step=step)
    match phi:
        case Atom(expression, relation, bound):
            return f"the {expression} {RELATIONS[relation]} {number_text(bound)}" + (_moment(step) if top else "")
        case Not(part):
            return f"it is not true that {inner(part, top=top)}"
        case And(parts):
            return (", and " if top else " and ").join(inner(part, top=top) for part in parts)
        case Or(parts):
            return "either " + " or ".join(inner(part, top=top) for part in parts)
        case Implies(left, right):
            return f"if {inner(left, top=top)}, then {inner(right, top=top)}"
        case Always(a, b, part):
            return f"{_window('every', a, b, step, top=top)} {inner(part, top=False)}"
        case Eventually(a, b, part):
            return f"{_window('some', a, b, step, top=top)} {inner(part, top=False)}"
        case Until(a, b, left, right):
            when = _window("some", a, b, step, top=top)
            return f"{inner(left, top=False)} up to {when.removeprefix('at ')} where {inner(right, top=False)}"


def _moment(step: int) -> str:
    return " at midnight" if step else " at the first reading"


def _window(quantity: str, a: int, b: int, step: int, *, top: bool) -> str:
    """Return `at every reading between 00:00 and 06:00`, or the window in steps."""
    if top and step:
        start, end = Stretch("", a, b, step).clock
        return f"at the reading of {start}" if a == b else f"at {quantity} reading between {start} and {end}"
    if a == b:
        return f"at reading {a}" if top else f"{a} readings later"
    return f"at {quantity} reading from {a} to {b}" + ("" if top else " later")
