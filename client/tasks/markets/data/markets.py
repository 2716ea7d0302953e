"""Markets of a client."""

from dataclasses import dataclass

import numpy as np

from client.data.dataset import Dataset
from client.data.tables.codes import combine_codes
from common.arrays import Ints
from common.tasks.markets.vocabulary import MarketCatalogue

Pairs = Ints
"""Rows of two numbers, P × 2."""


@dataclass(frozen=True, eq=False)
class Market:
    """One market: what becomes a client.

    Args:
        name: Public, such as `uk`.
        ratings: Who rated what, R × 2 of (user, item), in order, each once; users are private and numbered from 0.
        pairs: Items that go together, P × 2, a < b, in order, each once; used alone where there are any.
    """

    name: str
    ratings: Pairs
    pairs: Pairs

    @property
    def listed(self) -> bool:
        """True if the market lists pairs of items itself."""
        return len(self.pairs) > 0


Markets = Dataset[MarketCatalogue, Market]


def as_pairs(rows: Ints) -> Pairs:
    """Return undirected pairs in order, each once; pairs of an item with itself are dropped."""
    if not len(rows):
        return no_rows()
    return _distinct(np.sort(rows[rows[:, 0] != rows[:, 1]], axis=1))


def as_ratings(rows: Ints) -> Pairs:
    """Return ratings in order, each once; users are renumbered without gaps, in their order."""
    if not len(rows):
        return no_rows()
    rows = _distinct(rows)
    return np.stack([np.unique(rows[:, 0], return_inverse=True)[1], rows[:, 1]], axis=1)


def no_rows() -> Pairs:
    """Return an empty table."""
    return np.zeros((0, 2), np.int64)


def _distinct(rows: Pairs) -> Pairs:
    """Return rows in order, each once."""
    _, first = np.unique(combine_codes(*rows.T), return_index=True)
    return rows[first]
