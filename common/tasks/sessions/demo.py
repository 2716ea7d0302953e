"""The vocabulary of the embedded demo visitors: the shelves of an invented department store."""

from functools import cache

from common.tasks.demo_store import SHELVES
from common.tasks.sessions.vocabulary import Items

NEXT_DOOR = 2
"""Shelves of a department, neighbours in the list."""

DEPARTMENTS = len(SHELVES) // NEXT_DOOR


@cache
def demo_items() -> Items:
    """The demo's items, shelf by shelf; the i-th department holds indices i·`department_size()` and on."""
    return Items(items=tuple(f"{kind} {thing}" for words in SHELVES.values() for kind, thing in _shelf(*words)))


def department_size() -> int:
    """Items of a department, the same for all."""
    return len(demo_items().items) // DEPARTMENTS


def _shelf(kinds: str, things: str) -> list[tuple[str, str]]:
    return [(kind, thing) for kind in kinds.split(", ") for thing in things.split(", ")]
