"""What a round looks like to the planner: the largest singular values of a matrix (algorithms.md §4.2)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import svds

from common.arrays import Array, Arrays
from common.errors import RunError
from server.planning.arms import FloatArray

MAX_DENSE_SIDE = 64
"""Matrices with a side up to this are decomposed whole."""


def largest_table(update: Arrays) -> Array:
    """The largest table of an update that moved, as a matrix: item embeddings, say; what clients keep never moves."""
    moved = [array for array in update.values() if array.any()] or list(update.values())
    largest = max(moved, key=lambda array: array.size)
    return largest.reshape(len(largest), -1) if largest.ndim else largest.reshape(1, 1)


def item_matrix(ids: Sequence[NDArray[np.integer]], items: int) -> FloatArray:
    """M_t, N × I: 1 where client k named item i this round, drawn ones included.

    Args:
        ids: What each client named.
        items: I.
    """
    matrix = np.zeros((len(ids), items))
    for row, named in zip(matrix, ids, strict=True):
        row[named] = 1.0
    return matrix


def singular_values(matrix: NDArray[np.floating], d: int) -> FloatArray:
    """x_t: the top d singular values in descending order, (d,); zeros where the matrix has fewer.

    They do not depend on the order of rows, so clients need none. Iterative solvers promise no order; this sorts.

    Args:
        matrix: Two-dimensional; the aggregated, already noisy update of item embeddings, or M_t of the paper.
        d: How many.

    Raises:
        RunError: The matrix holds NaN or infinity.
    """
    if not np.isfinite(matrix).all():
        raise RunError("the update that describes this round is not finite; lower the learning rate or the noise")
    found = np.sort(_top_singular_values(np.asarray(matrix, np.float64), d))[::-1][:d]
    return np.concatenate([found, np.zeros(d - len(found))])


def _top_singular_values(matrix: FloatArray, d: int) -> FloatArray:
    side = min(matrix.shape)
    if side == 0 or d == 0 or not matrix.any():
        return np.zeros(0)
    if side <= max(MAX_DENSE_SIDE, 2 * d):
        return np.asarray(np.linalg.svd(matrix, compute_uv=False), np.float64)
    start = np.random.default_rng(0).normal(size=side)  # ARPACK draws its own otherwise, and no two runs agree
    return np.asarray(svds(matrix, k=d, v0=start, return_singular_vectors=False), np.float64)
