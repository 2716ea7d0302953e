"""Ranking metrics of items that go with an item (algorithms.md §5.5): every item of the market competes, no sample of them.

The query itself and its training neighbours are masked with −inf. Ties count as if broken at random: a metric is its mean
over all their orders.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.floating[Any]]
Places = NDArray[np.int64]
Sparse = csr_array[Any, tuple[int, int]]

ScoreBlock = Callable[[Places], Floats]
"""Queries, b items -> their scores of all items, b × n; the scores are written over."""

TOPS = (10, 20)
AT_ONCE = 2**20
"""Scores worked on together, 4 MB: what a processor's cache holds."""

CHUNKS = 512
"""Parts a row of scores is looked through in, about."""

GAINS = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, TOPS[-1] + 2)))])
"""DCG of right answers on the first N places, N from 0."""


@dataclass(frozen=True, eq=False)
class Hits:
    """Where the A right answers of b queries stand.

    Args:
        row: Number of the query, A.
        above: Items with a higher score, at most 20, A.
        level: Items with the same score, itself among them, A.
    """

    row: Places
    above: Places
    level: Places

    def within(self, top: int, cumulated: Floats) -> Floats:
        """Mean gain of each on its possible places up to `top`, A; `cumulated`: gains of the first N places, N from 0."""
        first, last = np.minimum(self.above, top), np.minimum(self.above + self.level, top)
        gain: Floats = (cumulated[last] - cumulated[first]) / self.level
        return gain


def ranking_metrics(scores: ScoreBlock, right: Sparse, masked: Sparse) -> tuple[dict[str, float], int]:
    """Means over the queries of MRR@N, NDCG@N and Recall@20, and the number of queries.

    Args:
        scores: Of a block of queries.
        right: n × n, row a holding the right answers of query a; items without any are no queries.
        masked: n × n, row a holding what cannot be an answer; what is both is no right answer.

    Returns:
        No metrics where there is no query; not-a-number for all where a score is.
    """
    asked = right.astype(bool)
    asked = csr_array(asked > asked.multiply(masked.astype(bool)))
    queries = np.flatnonzero(np.diff(asked.indptr)).astype(np.int64)
    if not len(queries):
        return {}, 0
    together = max(1, AT_ONCE // right.shape[1])
    blocks = [queries[first : first + together] for first in range(0, len(queries), together)]
    rows = [_of_block(scores(block), block, csr_array(asked[block]), csr_array(masked[block])) for block in blocks]
    return {key: float(np.concatenate([row[key] for row in rows]).mean()) for key in rows[0]}, len(queries)


def _of_block(scores: Floats, queries: Places, right: Sparse, masked: Sparse) -> dict[str, Floats]:
    """Each query's own metrics, b each."""
    broken = np.isnan(scores.max(axis=1))
    scores[np.arange(len(queries)), queries] = -np.inf
    scores[_rows(masked), masked.indices] = -np.inf
    hits, answers = _hits(scores, right), np.diff(right.indptr)
    places = np.arange(TOPS[-1] + 1, dtype=float)
    metrics = {f"mrr{top}": _first(hits, len(queries), top) for top in TOPS}
    for top in TOPS:
        gained = np.bincount(hits.row, hits.within(top, GAINS), len(queries))
        metrics[f"ndcg{top}"] = gained / GAINS[np.minimum(answers, top)]
    metrics["recall20"] = np.bincount(hits.row, hits.within(TOPS[-1], places), len(queries)) / answers
    return {key: np.where(broken, np.nan, values) for key, values in metrics.items()}


def _hits(scores: Floats, right: Sparse) -> Hits:
    """The right answers that may stand among the first 20."""
    best, floor = _best(scores)
    top = min(TOPS[-1], scores.shape[1])
    last = np.partition(best, best.shape[1] - top, axis=1)[:, -top]
    row, own = _rows(right), scores[_rows(right), right.indices]
    near = own >= last[row]
    row, own = row[near], own[near]
    level = (best[row] == own[:, None]).sum(axis=1)
    edge = np.unique(row[own == floor[row]])  # only there, equals may be missing from the best
    equal = np.zeros(len(scores), np.int64)
    equal[edge] = (scores[edge] == floor[edge, None]).sum(axis=1)
    level = np.where(own == floor[row], equal[row], level)
    return Hits(row, (best[row] > own[:, None]).sum(axis=1), level)


def _best(scores: Floats) -> tuple[Floats, Floats]:
    """Each row's scores above a floor that 20 reach at least, b × m, filled up with the floor itself, b.

    The 20th largest of the maxima of a row's parts is such a floor, and one pass finds it. Sorting whole rows apart, as
    `numpy.partition` does, takes ten times as long, and far longer where most scores are equal.
    """
    size = scores.shape[1]
    top, deep = min(TOPS[-1], size), max(1, size // CHUNKS)
    whole = size - size % deep
    parts = scores[:, :whole].reshape(len(scores), deep, -1).max(axis=1)
    maxima = np.concatenate([parts, scores[:, whole:]], axis=1)
    floor = np.partition(maxima, maxima.shape[1] - top, axis=1)[:, -top]
    at = np.flatnonzero(scores > floor[:, None])
    row = at // size
    counts = np.bincount(row, minlength=len(scores))
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    best = np.repeat(floor[:, None], max(top, int(counts.max())), axis=1)
    best[row, place] = scores.take(at)
    return best, floor


def _first(hits: Hits, queries: int, top: int) -> Floats:
    """Mean of 1/(place of the first right answer) over the orders of equals, 0 beyond `top`; b.

    Of g equals of which p are right, the first right one is the j-th with probability C(g−j, p−1)/C(g, p).
    """
    ahead = np.full(queries, TOPS[-1])
    np.minimum.at(ahead, hits.row, hits.above)
    leading = hits.above == ahead[hits.row]
    equal, ours = np.ones(queries), np.bincount(hits.row[leading], minlength=queries).astype(float)
    equal[hits.row[leading]] = hits.level[leading]
    chance, mean = ours / equal, np.zeros(queries)
    for j in range(1, top + 1):
        mean += np.where(ahead + j <= top, chance / (ahead + j), 0.0)
        chance = chance * np.maximum(equal - j - ours + 1, 0) / np.maximum(equal - j, 1)
    return mean


def _rows(matrix: Sparse) -> Places:
    """Row of every stored entry."""
    return np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
