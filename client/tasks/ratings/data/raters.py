"""Ratings as the client holds them."""

from dataclasses import dataclass

from client.data.dataset import Dataset
from common.arrays import Floats, Ints
from common.tasks.ratings.vocabulary import ProductCatalogue

FREE, TRAIN, VALIDATION, TEST = -1, 0, 1, 2
"""Splits of a rating; the client splits free ones itself."""


@dataclass(frozen=True, eq=False)
class Rater:
    """One person: what becomes a client.

    Args:
        name: Private.
        items: Products rated, each once, n indices into the vocabulary.
        ratings: n, in the data's own units.
        splits: n, the split of each rating; None if all are free.
    """

    name: str
    items: Ints
    ratings: Floats
    splits: Ints | None = None


Ratings = Dataset[ProductCatalogue, Rater]
