"""Vocabulary of the generated demo visitors: products of a department store."""

from functools import cache

from common.tasks.demo_store import SHELVES
from common.tasks.sessions.vocabulary import Items

SHELVES_PER_DEPARTMENT = 2
"""Number of consecutive shelves of a department."""

DEPARTMENTS = len(SHELVES) // SHELVES_PER_DEPARTMENT


@cache
def demo_items() -> Items:
    """Return the demo's items, shelf by shelf; department i starts at index i·`department_size()`."""
    return Items(items=tuple(f"{kind} {thing}" for words in SHELVES.values() for kind, thing in _shelf(*words)))


def department_size() -> int:
    """Return the number of items of a department, equal for all departments."""
    return len(demo_items().items) // DEPARTMENTS


def _shelf(kinds: str, things: str) -> list[tuple[str, str]]:
    return [(kind, thing) for kind in kinds.split(", ") for thing in things.split(", ")]
