"""Models that follow from sums over clients in closed form, as methods without training use them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from common.arrays import Array, Arrays, Floats, Ints
from common.errors import DataError, WireError
from common.privacy.vectors import Sign
from common.tasks.vocabulary import Vocabulary
from common.wire.sparse_rows import named_rows

VocabularyT = TypeVar("VocabularyT", bound=Vocabulary)


@dataclass(frozen=True)
class RowNames:
    """Names that the rows of a table of statistics stand for, by which another run finds them again.

    A row is a combination of names, one of each list, or a pair of such combinations.

    Args:
        lists: What is solved so far -> lengths of the lists of names.
        chosen: Array of the solution with the combinations that have rows, ascending; empty: all have, in order.
        pairs: Rows of pairs of combinations: `unordered` as in `pairs_of`, or `ordered`, i·N + j.
    """

    lists: Callable[[Arrays], Sequence[int]]
    chosen: str = ""
    pairs: Literal["", "unordered", "ordered"] = ""

    def members(self, solved: Arrays, rows: Ints) -> list[Ints]:
        """Return the position of the combination of each row, or the positions of both of a pair."""
        if self.pairs == "unordered":
            return [*ends_of(rows)]
        return [*np.divmod(rows, len(solved[self.chosen]))] if self.pairs else [rows]

    def read(self, solved: Arrays, rows: Ints) -> Ints:
        """Return the indices of the names of each row, as many columns as it has names."""
        ids = [solved[self.chosen][one] if self.chosen else one for one in self.members(solved, rows)]
        return np.stack([index for one in ids for index in np.unravel_index(one, tuple(self.lists(solved)))], axis=1)

    def find(self, solved: Arrays, names: Ints) -> Ints:
        """Return the row of each combination of names; −1 for those without a row."""
        lists = self.lists(solved)
        members = [
            np.ravel_multi_index(tuple(part.T), tuple(lists), mode="clip")
            for part in np.split(names.astype(np.int64), names.shape[1] // len(lists), axis=1)
        ]
        is_inside = (names < np.tile(lists, len(members))).all(axis=1)
        if self.chosen:
            chosen = solved[self.chosen]
            positions = [np.searchsorted(chosen, one).clip(max=len(chosen) - 1) for one in members]
            for one, position in zip(members, positions, strict=True):
                is_inside &= chosen[position] == one
            members = positions
        if not self.pairs:
            rows = members[0]
        elif self.pairs == "ordered":
            rows = members[0] * len(solved[self.chosen]) + members[1]
        else:
            large = np.maximum(*members)
            rows = large * (large + 1) // 2 + np.minimum(*members)
        return np.where(is_inside, rows, -1)


@dataclass(frozen=True)
class Entries:
    """Range of each number of a statistic that honest data can give.

    Args:
        low: Smallest possible value.
        high: Largest possible value.
        per_record: True if the range is that of one record of a client, whose values add up.
        has_counts: True if rows are a sum of values of at most 1 in size and their number; `low` and `high` are of the sum.
    """

    low: float = 0.0
    high: float = np.inf
    per_record: bool = True
    has_counts: bool = False


@dataclass(frozen=True)
class Effort:
    """Effort of a solve.

    Args:
        bytes: Memory beside the sum.
        operations: Multiplications and additions in float64.
    """

    bytes: float = 0.0
    operations: float = 0.0


@dataclass(frozen=True)
class ClosedForm(Generic[VocabularyT]):
    """Closed form of a task: a few sums over the clients, each of which may depend on the earlier ones.

    A client's statistics are arrays of fixed names and shapes. What was solved so far is sent to the clients with the next
    request, and is the model in the end.

    Args:
        sums: Number of sums.
        noised_sums: Number of sums in runs with noise, among which the budget is divided.
        start: View of the run's configuration, a `TaskRun` -> what is known before the first sum, such as sizes.
        template: What is solved so far -> zeros of the names, shapes and dtypes of a client's next statistics. Tables may be
            sent as rows.
        solve: (what is solved so far, next sums in float64, strength λ of the ridge or 0 if clients choose it) -> what is
            solved after these sums.
        limit_masked: (what is known before the first sum, columns that each table has in addition) -> the same in secure
            sums, in which a client's vector has all rows.
        lasting: Statistic -> names of its rows, for sums to which a run that continues this one adds its own. Other
            statistics, such as hits by λ, depend on a model and are those of one run.
        effort: What is solved so far -> effort of the next solve, if it is more than a few additions.
        noised_sign: `positive` if no number of a client's statistics is negative in runs with noise; the sensitivity is then
            smaller.
        entries: Statistic -> range of its numbers in runs without noise; others can have any value.
        on_top: Model variants whose networks can train on top of the solution.
    """

    sums: int
    noised_sums: int
    start: Callable[[Any], Arrays]
    template: Callable[[Arrays], Arrays]
    solve: Callable[[Arrays, Arrays, float], Arrays]
    limit_masked: Callable[[Arrays, int], Arrays] = lambda started, columns: started
    lasting: Mapping[str, RowNames] = field(default_factory=dict)
    effort: Callable[[Arrays], Effort] = lambda solved: Effort()
    noised_sign: Sign = "signed"
    entries: Mapping[str, Entries] = field(default_factory=dict)
    on_top: tuple[str, ...] = ("default",)

    def name_sums(self, solved: Arrays, sums: Arrays) -> Arrays:
        """Return the rows of lasting sums other than 0, with the indices of their names, n × names."""
        found: Arrays = {}
        for name in self.lasting.keys() & sums.keys():
            rows = np.flatnonzero(sums[name].reshape(len(sums[name]), -1).any(axis=1))
            found[name + NAMES] = self.lasting[name].read(solved, rows).astype(np.int32)
            found[name + VALUES] = sums[name][rows].astype(np.float64)
        return found

    def add_named(self, solved: Arrays, sums: Arrays, named: Arrays) -> Arrays:
        """Return the next sums plus those of an earlier run, in the form of `name_sums`.

        Names without a row in this run are left out.
        """
        found = dict(sums)
        for name in self.lasting.keys() & sums.keys():
            if name + NAMES in named:
                rows, values = self.lasting[name].find(solved, named[name + NAMES]), named[name + VALUES]
                found[name] = np.array(sums[name], np.float64)
                found[name][rows[rows >= 0]] += values[rows >= 0]
        return found


NAMES, VALUES = "/names", "/values"
"""Suffixes of the arrays of named sums."""


AnyClosedForm = ClosedForm[Any]
"""Closed form of any vocabulary."""


def first_size(sizes: str) -> Callable[[Arrays], tuple[int, ...]]:
    """Return `RowNames.lists` for one list, whose length is the first of these sizes."""
    return lambda solved: (int(solved[sizes][0]),)


def limit_masked(sizes: str, most: int, columns: int = 1) -> Callable[[Arrays, int], Arrays]:
    """Return `ClosedForm.limit_masked` for sizes that end with the largest number of items.

    The pairs of `most` items with so many columns fit a secure sum; those of fewer items fit with further columns.
    """

    def limit(started: Arrays, further: int) -> Arrays:
        fewer = int(most * (columns / (columns + further)) ** 0.5)
        return {**started, sizes: np.minimum(started[sizes], [*started[sizes][:-1], fewer])}

    return limit


def check_sizes(found: Array, expected: Ints) -> None:
    """Check the sizes of a server's sums: those of the vocabulary, last a number of items up to its own.

    Raises:
        WireError: They are others.
    """
    is_same = found.shape == expected.shape and np.array_equal(found[:-1], expected[:-1])
    if not is_same or not 0 < found[-1] <= expected[-1]:
        raise WireError("the server's sums are not of this vocabulary")


def check_ids(ids: Array, most: int, count: int, what: str) -> None:
    """Check ids that a server has chosen: ascending, at most `most`, each below `count`.

    Raises:
        WireError: They are not.
    """
    is_list = ids.dtype == np.int64 and ids.ndim == 1 and len(ids) <= most
    if not is_list or (np.diff(ids) <= 0).any() or (ids < 0).any() or (ids >= count).any():
        raise WireError(f"the server's {what} are out of order, or not of this vocabulary")


def widen(template: Arrays) -> Arrays:
    """Return a template whose tables have one column more; see `count_clients`."""
    return {n: np.zeros((len(a), a.shape[1] + 1), a.dtype) if a.ndim == 2 else a for n, a in template.items()}


def count_clients(statistics: Arrays) -> Arrays:
    """Return a client's statistics with a column more in each table: 1 for rows that are not all zero."""
    return {
        n: np.concatenate([a, (a != 0).any(axis=1, keepdims=True).astype(a.dtype)], axis=1) if a.ndim == 2 else a
        for n, a in statistics.items()
    }


def drop_rare(sums: Arrays, least: int) -> Arrays:
    """Return sums over `count_clients` without its column; rows of fewer than `least` clients are zero."""
    found = {n: a[:, :-1].copy() if a.ndim == 2 else a for n, a in sums.items()}
    for n, a in sums.items():
        if a.ndim == 2:
            found[n][a[:, -1] < least - 0.5] = 0
    return found


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


def choose_used(counts: Floats, most: int, unit: str, record: str) -> Ints:
    """Return what `choose_most` does.

    Raises:
        DataError: There is no count, since no unit has a record.
    """
    if not len(chosen := choose_most(counts, most)):
        raise DataError(
            f"no {unit} of this run has a {record}, so there is nothing to solve; add {unit}s with {record}s"
        )
    return chosen


def pairs_of(positions: Ints) -> Ints:
    """Return the ids j(j + 1)/2 + i of all pairs i ≤ j of ascending positions."""
    large, small = np.tril_indices(len(positions))
    return np.asarray(positions[large] * (positions[large] + 1) // 2 + positions[small], np.int64)


def ends_of(pairs: Ints) -> tuple[Ints, Ints]:
    """Return the positions i ≤ j of pairs; the inverse of `pairs_of`."""
    large = ((np.sqrt(8.0 * pairs + 1) - 1) / 2).astype(np.int64)
    return pairs - large * (large + 1) // 2, large


def upper(pairs: Floats, dtype: DTypeLike = np.float64) -> Floats:
    """Return the upper triangle of a symmetric matrix, V × V, of the values of its pairs; see `pairs_of`.

    Memory of its lower triangle is not used until it is written.
    """
    size = int(np.sqrt(2 * len(pairs)))
    matrix, first = np.zeros((size, size), dtype), 0
    for row in range(size):
        matrix[: row + 1, row] = pairs[first : first + row + 1]
        first += row + 1
    return matrix


def symmetric(pairs: Floats) -> Floats:
    """Return the symmetric matrix, V × V, of the values of its V(V + 1)/2 pairs; see `pairs_of`."""
    matrix = upper(pairs)
    for row in range(len(matrix)):
        matrix[row, :row] = matrix[:row, row]
    return matrix
