"""Dense products of sparse matrices, b × n for a block of b rows."""

from itertools import pairwise

import numpy as np
from scipy.sparse import csc_array, csr_array, get_index_dtype

from client.tasks.markets.data.graph import Sparse
from common.arrays import Floats32

TERMS = 2**20
"""Terms of a product held at once, 20 bytes each; the last row of them may exceed it."""

TILE = 4096
"""Columns of a tile: as many rows of a dense block as a processor's smaller cache holds."""


def product(left: Sparse, right: Sparse) -> Floats32:
    """Return left @ right as a dense array, b × n, for sparse rows of `left`."""
    terms = np.diff(right.indptr)[left.indices]
    before = np.append(0, np.cumsum(terms))[left.indptr[:-1]]
    cuts = np.flatnonzero(np.diff(before // TERMS)) + 1
    bounds = [0, *cuts.tolist(), left.shape[0]]
    return np.concatenate([_spread(left[a:b], right) for a, b in pairwise(bounds)])


def tiles(matrix: Sparse) -> tuple[Sparse, ...]:
    """Split a matrix between columns, m × `TILE` each but the last."""
    return tuple(csr_array(matrix[:, first : first + TILE]) for first in range(0, matrix.shape[1], TILE))


def passed(cut: tuple[Sparse, ...], rows: Floats32) -> Floats32:
    """Return rows @ matrixᵀ, b × n, for rows, b × n, and a matrix in tiles, n × n."""
    start = np.ascontiguousarray(rows.T)
    end, first = np.zeros_like(start), 0
    for tile in cut:
        end += tile @ start[first : first + tile.shape[1]]
        first += tile.shape[1]
    return np.ascontiguousarray(end.T)


def _spread(left: Sparse, right: Sparse) -> Floats32:
    """Compute left @ right by adding the row of `right` for each entry of `left`."""
    rows, size = left.shape[0], right.shape[1]
    picked = right[left.indices]
    numbers = np.arange(rows, dtype=get_index_dtype(maxval=rows * size))
    start = np.repeat(numbers * size, np.diff(left.indptr))
    places = picked.indices + np.repeat(start, np.diff(picked.indptr))
    added = csc_array((picked.data, places, picked.indptr), shape=(rows * size, len(start)))
    flat: Floats32 = added @ left.data
    return flat.reshape(rows, size)
