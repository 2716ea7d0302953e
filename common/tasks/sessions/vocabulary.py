"""Vocabulary of the sessions task."""

from typing import Self

from pydantic import model_validator

from common.arrays import Ints
from common.tasks.vocabulary import Vocabulary, check_names

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
