"""Ratings as the client holds them."""

from dataclasses import dataclass

from client.data.dataset import Dataset
from common.arrays import Floats, Ints
from common.tasks.ratings.vocabulary import ProductCatalogue


@dataclass(frozen=True, eq=False)
class Rater:
    """One person: what becomes a client.

    Args:
        name: Private.
        items: Products rated, each once, n indices into the vocabulary.
        ratings: n, in the data's own units.
    """

    name: str
    items: Ints
    ratings: Floats


Ratings = Dataset[ProductCatalogue, Rater]
