"""Vocabulary of the sessions task, and that of the generated demo visitors."""

from functools import cache
from typing import Self

from pydantic import model_validator

from common.arrays import Ints
from common.tasks.vocabulary import SHELVES, Vocabulary, check_names

Clicks = Ints
"""Items of one session in order, as indices into `Items.items`, shape (L,)."""


class Items(Vocabulary):
    """Vocabulary of the sessions task; item i is row i + 1 of the embedding, row 0 is padding."""

    items: tuple[str, ...]
    """Ids of the V items."""

    @model_validator(mode="after")
    def _names_are_usable(self) -> Self:
        check_names("an item", self.items)
        return self


SHELVES_PER_DEPARTMENT = 2
"""Number of consecutive shelves of a department."""

DEPARTMENTS = len(SHELVES) // SHELVES_PER_DEPARTMENT


@cache
def demo_items() -> Items:
    """Return the demo's items, shelf by shelf; department i starts at index i·`department_size()`."""
    shelves = ((kinds.split(", "), things.split(", ")) for kinds, things in SHELVES.values())
    return Items(items=tuple(f"{kind} {thing}" for kinds, things in shelves for kind in kinds for thing in things))


def department_size() -> int:
    """Return the number of items of a department, equal for all departments."""
    return len(demo_items().items) // DEPARTMENTS
