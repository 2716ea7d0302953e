"""Ratings as the client holds them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client.data.dataset import Dataset
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
    items: NDArray[np.int64]
    ratings: NDArray[np.float64]


Ratings = Dataset[ProductCatalogue, Rater]
