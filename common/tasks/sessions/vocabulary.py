"""Vocabulary of the sessions task."""

from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from common.tasks.vocabulary import Vocabulary, check_names

Clicks = NDArray[np.int64]
"""Items of one session in order, indices into `Items.items`, shape (L,)."""


class Items(Vocabulary):
    """The items a federation recommends; item i of the vocabulary is row i + 1 of the embedding, row 0 is padding."""

    items: tuple[str, ...]
    """Item ids, the V scores of a session."""

    @model_validator(mode="after")
    def _names_are_usable(self) -> Self:
        check_names("an item", self.items)
        return self
