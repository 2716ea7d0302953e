"""Codes: whole numbers that stand for names."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from common.arrays import Ints

NameT = TypeVar("NameT", bound=Hashable)
Codes = Ints

LARGEST = 2**62
"""Bound of combined codes; larger ones are ranked first."""


def index_names(lists: Sequence[Sequence[NameT]]) -> dict[NameT, int]:
    """Return every name of several lists -> its code, by first appearance."""
    return {name: k for k, name in enumerate(dict.fromkeys(name for names in lists for name in names))}


def recode(code: Codes, names: Sequence[NameT], index: Mapping[NameT, int]) -> Codes:
    """Return codes into `names` as codes by `index`; −1 stays: it picks the last entry."""
    return np.array([*(index[name] for name in names), -1], np.int64)[code]


def sort_unique(values: Codes) -> Codes:
    """Return values in order, each once; faster than `numpy.unique` where most are distinct."""
    ordered = np.sort(values)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))]


def combine_codes(*columns: Codes) -> Codes:
    """Return R numbers for several columns of R codes, ordered as the rows of codes are."""
    key: Codes = np.zeros(len(columns[0]), np.int64)
    for column in columns if len(key) else ():
        if _span(key) * _span(column) >= LARGEST:
            key, column = (np.unique(codes, return_inverse=True)[1].astype(np.int64) for codes in (key, column))
        low = column.min()
        key = (key - key.min()) * (column.max() - low + 1) + (column - low)
    return key


def _span(column: Codes) -> int:
    return int(column.max()) - int(column.min()) + 1
