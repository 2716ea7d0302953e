"""Vocabulary of the ratings task, and that of the generated demo raters."""

import json
import math
from collections.abc import Collection
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from common.errors import DataError
from common.tasks.vocabulary import Entry, Vocabulary

Values = NDArray[np.floating[Any]]


class ProductCatalogue(Vocabulary):
    """Vocabulary of the ratings task: products and the scale; product i is row i of the model."""

    items: tuple[str, ...]
    """Names of the I products."""

    low: float = 0.0
    """Rating that maps to 0: the lowest of the scale or less (MovieLens, rated 1 to 5: 0)."""

    high: float = 5.0
    """Rating that maps to 1."""

    @model_validator(mode="after")
    def _names_and_scale_are_usable(self) -> Self:
        if len(set(self.items)) < len(self.items):
            raise ValueError("a product is listed twice")
        if not self.items or "" in self.items:
            raise ValueError("a product has no name, or the list of products is empty")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"the scale from {self.low:g} to {self.high:g} is empty; give low below high")
        return self

    def entries(self) -> list[Entry]:
        """Return the products one by one, and both ends of the scale."""
        return [*(("items", item) for item in self.items), ("low", self.low), ("high", self.high)]

    @classmethod
    def from_entries(cls, entries: Collection[Entry]) -> Self:
        """Return the vocabulary of these entries, on the widest scale among them.

        Raises:
            DataError: They have no scale.
        """
        low, high = ([entry[1] for entry in entries if entry[0] == end] for end in ("low", "high"))
        if not low or not high:
            raise DataError("too few clients have the same scale; give low and high in a vocabulary file (--catalogue)")
        items = sorted(entry[1] for entry in entries if entry[0] == "items")
        return cls.from_json(json.dumps({"items": items, "low": min(low), "high": max(high)}))

    @classmethod
    def noun(cls) -> str:
        """Return the noun of the names, for messages."""
        return "products"

    def scaled(self, ratings: Values) -> Values:
        """Return ratings in the data's units as shares of the scale, in [0, 1]."""
        return (ratings - self.low) / (self.high - self.low)

    def unscaled(self, shares: Values) -> Values:
        """Return shares of the scale in the data's units; inverse of `scaled`."""
        return self.low + shares * (self.high - self.low)


MOODS = (
    "Quiet, Last, Burning, Hidden, Broken, Silver, Northern, "
    "Endless, Borrowed, Forgotten, Crooked, Golden, Empty, Secret, Restless"
)
SUBJECTS = (
    "Harbour, Summer, Orchard, Letter, Bridge, Winter, Lighthouse, Promise, "
    "Garden, Island, Mirror, Journey, Tower, Song, River, Door"
)


@cache
def demo_products() -> ProductCatalogue:
    """Return 240 films rated with one to five stars; as with MovieLens, r/5 is the share of the scale."""
    names = (f"The {mood} {subject}" for subject in SUBJECTS.split(", ") for mood in MOODS.split(", "))
    return ProductCatalogue(items=tuple(names), low=0, high=5)
