"""Ratings as the client holds them."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from common.tasks.ratings.options import Products


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


@dataclass(frozen=True)
class Dataset:
    """Raters of the same products.

    Args:
        raters: In the order of their names; some may have no rating.
        products: The vocabulary that indices refer to, and the scale.
        notes: What a person should know of the reading, such as how many rows were skipped and why.
    """

    raters: tuple[Rater, ...]
    products: Products
    notes: tuple[str, ...] = field(default=())
