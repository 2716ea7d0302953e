"""Models that follow from sums over clients in closed form, as methods without training use them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from common.arrays import Arrays, Floats, Ints
from common.privacy.vectors import Sign
from common.tasks.vocabulary import Vocabulary
from common.wire.sparse_rows import named_rows

VocabularyT = TypeVar("VocabularyT", bound=Vocabulary)


@dataclass(frozen=True)
class ClosedForm(Generic[VocabularyT]):
    """Closed form of a task: a few sums over the clients, each of which may depend on the earlier ones.

    A client's statistics are arrays of fixed names and shapes. What was solved so far is sent to the clients with the next
    request, and is the model in the end.

    Args:
        sums: Number of sums; one less if λ is given.
        noised_sums: Number of sums in runs with noise, among which the budget is divided.
        start: (vocabulary, True in runs with noise) -> what is known before the first sum, such as sizes.
        template: What is solved so far -> zeros of the names, shapes and dtypes of a client's next statistics. Tables may be
            sent as rows.
        solve: (what is solved so far, next sums in float64, strength λ of the ridge or 0 if clients choose it) -> what is
            solved after these sums.
        noised_sign: `positive` if no number of a client's statistics is negative in runs with noise; the sensitivity is then
            smaller.
        limit_masked: What is known before the first sum -> the same in secure sums, in which a client's vector has all rows.
    """

    sums: int
    noised_sums: int
    start: Callable[[VocabularyT, bool], Arrays]
    template: Callable[[Arrays], Arrays]
    solve: Callable[[Arrays, Arrays, float], Arrays]
    limit_masked: Callable[[Arrays], Arrays] = lambda started: started
    noised_sign: Sign = "signed"


AnyClosedForm = ClosedForm[Any]
"""Closed form of any vocabulary."""


def sum_entries(table: str, entries: Sequence[tuple[Ints, float | Floats]]) -> Arrays:
    """Return the sum of values at ids of a table of one column, as its rows with their ids.

    One value is that of all its ids.
    """
    ids, column = np.unique(np.concatenate([np.zeros(0, np.int64), *(ids for ids, _ in entries)]), return_inverse=True)
    values = np.concatenate([np.zeros(0), *(np.full(len(ids), value) for ids, value in entries)])
    return named_rows(table, ids, np.bincount(column, values, len(ids)).astype(np.float32)[:, None])


def choose_most(counts: Floats, most: int) -> Ints:
    """Return the ids with a count, ascending; of more than `most`, those with the largest counts."""
    chosen = np.flatnonzero(counts > 0.5)
    if len(chosen) > most:
        chosen = np.sort(chosen[np.argsort(-counts[chosen], kind="stable")[:most]])
    return np.asarray(chosen, np.int64)


def pairs_of(positions: Ints) -> Ints:
    """Return the ids j(j + 1)/2 + i of all pairs i ≤ j of ascending positions."""
    large, small = np.tril_indices(len(positions))
    return np.asarray(positions[large] * (positions[large] + 1) // 2 + positions[small], np.int64)


def symmetric(pairs: Floats) -> Floats:
    """Return the symmetric matrix, V × V, of the values of its V(V + 1)/2 pairs; see `pairs_of`."""
    size = int(np.sqrt(2 * len(pairs)))
    matrix = np.zeros((size, size))
    matrix[np.tri(size, dtype=bool)] = pairs
    matrix += np.tril(matrix, -1).T
    return matrix
