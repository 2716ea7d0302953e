"""Ranking metrics of related items (algorithms.md §5.5) over all items of the market.

The query and its training neighbors are masked with −inf. Metrics are means over all orders of tied items.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from common.arrays import Ints

Floats = NDArray[np.floating[Any]]
Sparse = csr_array[Any, tuple[int, int]]

ScoreBlock = Callable[[Ints], Floats]
"""Function of b queries that returns scores of all items, b × n; the metrics overwrite the scores."""

TOPS = (10, 20)
BLOCK_SCORES = 2**20
"""Number of scores processed together; 4 MB fit a processor's cache."""

ROW_PARTS = 512
"""Approximate number of parts of a row whose maxima are computed."""

GAINS = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, TOPS[-1] + 2)))])
"""DCG of right answers at the first N ranks, N from 0."""


@dataclass(frozen=True, eq=False)
class Hits:
    """Ranks of the A right answers of b queries.

    Args:
        row: Index of the query, A.
        above: Number of items with a higher score, at most 20, A.
        level: Number of items with an equal score, including the answer, A.
    """

    row: Ints
    above: Ints
    level: Ints

    def within(self, top: int, cumulative_gains: Floats) -> Floats:
        """Return the mean gain of each answer over its possible ranks up to `top`, A.

        Args:
            top: Largest rank with a gain.
            cumulative_gains: Sum of the gains of the first N ranks, N from 0.
        """
        first, last = np.minimum(self.above, top), np.minimum(self.above + self.level, top)
        mean_gain: Floats = (cumulative_gains[last] - cumulative_gains[first]) / self.level
        return mean_gain


def ranking_metrics(scores: ScoreBlock, right: Sparse, masked: Sparse) -> tuple[dict[str, float], int]:
    """Return means over the queries of the metrics of `query_metrics`, and the number of queries.

    Without queries there are no metrics.
    """
    rows = query_metrics(scores, right, masked)
    return {key: float(values.mean()) for key, values in rows.items()}, len(next(iter(rows.values()), ()))


def query_metrics(scores: ScoreBlock, right: Sparse, masked: Sparse) -> dict[str, Floats]:
    """Return MRR@N, NDCG@N and Recall@20 of each query; empty without queries.

    A query with a NaN score has NaN metrics.

    Args:
        scores: Scores of a block of queries.
        right: Right answers of query a in row a, n × n; items without right answers are not queries.
        masked: Items that cannot be an answer of query a in row a, n × n; they are not right answers either.
    """
    answers = right.astype(bool)
    answers = csr_array(answers > answers.multiply(masked.astype(bool)))
    queries = np.flatnonzero(np.diff(answers.indptr)).astype(np.int64)
    if not len(queries):
        return {}
    block_size = max(1, BLOCK_SCORES // right.shape[1])
    blocks = [queries[first : first + block_size] for first in range(0, len(queries), block_size)]
    rows = [_of_block(scores(block), block, csr_array(answers[block]), csr_array(masked[block])) for block in blocks]
    return {key: np.concatenate([row[key] for row in rows]) for key in rows[0]}


def _of_block(scores: Floats, queries: Ints, right: Sparse, masked: Sparse) -> dict[str, Floats]:
    """Compute the metrics of each query, b each."""
    is_nan = np.isnan(scores.max(axis=1))
    scores[np.arange(len(queries)), queries] = -np.inf
    scores[_rows(masked), masked.indices] = -np.inf
    hits, answers = _hits(scores, right), np.diff(right.indptr)
    places = np.arange(TOPS[-1] + 1, dtype=float)
    metrics = {f"mrr{top}": _first(hits, len(queries), top) for top in TOPS}
    for top in TOPS:
        gained = np.bincount(hits.row, hits.within(top, GAINS), len(queries))
        metrics[f"ndcg{top}"] = gained / GAINS[np.minimum(answers, top)]
    metrics["recall20"] = np.bincount(hits.row, hits.within(TOPS[-1], places), len(queries)) / answers
    return {key: np.where(is_nan, np.nan, values) for key, values in metrics.items()}


def _hits(scores: Floats, right: Sparse) -> Hits:
    """Return the right answers that can be among the first 20."""
    best, floor = _best(scores)
    top = min(TOPS[-1], scores.shape[1])
    last = np.partition(best, best.shape[1] - top, axis=1)[:, -top]
    row, right_scores = _rows(right), scores[_rows(right), right.indices]
    is_ranked = right_scores >= last[row]
    row, right_scores = row[is_ranked], right_scores[is_ranked]
    level = (best[row] == right_scores[:, None]).sum(axis=1)
    edge = np.unique(row[right_scores == floor[row]])  # only these can have ties missing from the best
    equal = np.zeros(len(scores), np.int64)
    equal[edge] = (scores[edge] == floor[edge, None]).sum(axis=1)
    level = np.where(right_scores == floor[row], equal[row], level)
    return Hits(row, (best[row] > right_scores[:, None]).sum(axis=1), level)


def _best(scores: Floats) -> tuple[Floats, Floats]:
    """Return each row's scores above a floor, b × m, padded with the floor, and the floors, b.

    At least 20 scores of a row reach its floor. The floor is the 20th largest of the maxima of a row's parts, found in one
    pass. `numpy.partition` of whole rows takes ten times as long, and far longer if most scores are equal.
    """
    size = scores.shape[1]
    top, deep = min(TOPS[-1], size), max(1, size // ROW_PARTS)
    whole = size - size % deep
    maxima_of_runs = scores[:, :whole].reshape(len(scores), deep, -1).max(axis=1)
    maxima = np.concatenate([maxima_of_runs, scores[:, whole:]], axis=1)
    floor = np.partition(maxima, maxima.shape[1] - top, axis=1)[:, -top]
    at = np.flatnonzero(scores > floor[:, None])
    row = at // size
    counts = np.bincount(row, minlength=len(scores))
    column = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    best = np.repeat(floor[:, None], max(top, int(counts.max())), axis=1)
    best[row, column] = scores.take(at)
    return best, floor


def _first(hits: Hits, queries: int, top: int) -> Floats:
    """Return the mean of 1/(rank of the first right answer) over the orders of ties, 0 beyond `top`; b.

    Among g ties with p right answers, the first right answer is the j-th with probability C(g−j, p−1)/C(g, p).
    """
    ahead = np.full(queries, TOPS[-1])
    np.minimum.at(ahead, hits.row, hits.above)
    leading = hits.above == ahead[hits.row]
    equal, right_ties = np.ones(queries), np.bincount(hits.row[leading], minlength=queries).astype(float)
    equal[hits.row[leading]] = hits.level[leading]
    probability, mean = right_ties / equal, np.zeros(queries)
    for j in range(1, top + 1):
        mean += np.where(ahead + j <= top, probability / (ahead + j), 0.0)
        probability = probability * np.maximum(equal - j - right_ties + 1, 0) / np.maximum(equal - j, 1)
    return mean


def _rows(matrix: Sparse) -> Ints:
    """Return the row of every stored entry."""
    return np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
