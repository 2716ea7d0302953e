"""Vocabulary of the ratings task."""

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from common.tasks.vocabulary import Vocabulary

Values = NDArray[np.floating[Any]]


class ProductCatalogue(Vocabulary):
    """What a federation rates, and on which scale; product i of the vocabulary is row i of the model."""

    items: tuple[str, ...]
    """Names of the I products."""

    low: float = 0.0
    """Rating that counts as 0: the lowest of the scale, or less, so that the lowest is not 0 (MovieLens: 0, of 1 to 5)."""

    high: float = 5.0
    """Rating that counts as 1."""

    @model_validator(mode="after")
    def _names_and_scale_are_usable(self) -> Self:
        if len(set(self.items)) < len(self.items):
            raise ValueError("a product is listed twice")
        if not self.items or "" in self.items:
            raise ValueError("name at least one product, and none by an empty name")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"a scale from {self.low:g} to {self.high:g} is none")
        return self

    @classmethod
    def what(cls) -> str:
        """What the names name, for error texts."""
        return "products"

    def scaled(self, ratings: Values) -> Values:
        """Ratings in the data's own units as shares of the scale, in [0, 1]."""
        return (ratings - self.low) / (self.high - self.low)

    def unscaled(self, shares: Values) -> Values:
        """Inverse of `scaled`."""
        return self.low + shares * (self.high - self.low)
