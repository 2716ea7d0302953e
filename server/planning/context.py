"""Context of a round: the largest singular values of a matrix (algorithms.md §4.2)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common.arrays import Array, Arrays, Floats
from common.errors import RunError

MAX_DENSE_SIDE = 64
"""Maximum side of a matrix that is decomposed by a dense solver."""


def largest_table(update: Arrays) -> Array:
    """Return the largest changed array of an update as a matrix, such as item embeddings.

    Private layers never change.
    """
    changed = [array for array in update.values() if array.any()] or list(update.values())
    largest = max(changed, key=lambda array: array.size)
    return largest.reshape(len(largest), -1) if largest.ndim else largest.reshape(1, 1)


def item_matrix(ids: Sequence[NDArray[np.integer]], items: int) -> Floats:
    """Return M_t, N × I: 1 if client k sent the id of item i this round, pseudo-items included.

    Args:
        ids: Item ids that each client sent.
        items: Number I of items.
    """
    matrix = np.zeros((len(ids), items))
    for row, columns in zip(matrix, ids, strict=True):
        row[columns] = 1.0
    return matrix


def singular_values(matrix: NDArray[np.floating], d: int) -> Floats:
    """Return x_t, the largest d singular values, descending, (d,); missing ones are 0.

    They do not depend on the order of rows, that is of clients. Iterative solvers return no order, so the values are sorted.

    Args:
        matrix: Aggregated noisy update of item embeddings, or M_t of the paper; two-dimensional.
        d: Number of singular values.

    Raises:
        RunError: The matrix has non-finite numbers.
    """
    if not np.isfinite(matrix).all():
        raise RunError("the update of this round is non-finite; lower lr or the noise")
    values = np.sort(_top_singular_values(np.asarray(matrix, np.float64), d))[::-1][:d]
    return np.concatenate([values, np.zeros(d - len(values))])


def _top_singular_values(matrix: Floats, d: int) -> Floats:
    side = min(matrix.shape)
    if side == 0 or d == 0 or not matrix.any():
        return np.zeros(0)
    if side <= max(MAX_DENSE_SIDE, 2 * d):
        return np.asarray(np.linalg.svd(matrix, compute_uv=False), np.float64)
    from scipy.sparse.linalg import svds  # 10 MB that runs without a planner do not need

    start = np.random.default_rng(0).normal(size=side)  # ARPACK's default start is random
    return np.asarray(svds(matrix, k=d, v0=start, return_singular_vectors=False), np.float64)
