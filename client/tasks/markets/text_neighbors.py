"""Items with the nearest texts, which stand in for an item that has no edges of its own."""

import numpy as np
from scipy.sparse import csr_array

from client.tasks.markets.data.graph import Sparse
from common.arrays import Floats32, Ints

NEAREST = 10
"""Number of items with the nearest texts."""


def text_neighbors(similarity: Floats32, queries: Ints) -> Sparse:
    """Return the weights of the items with the nearest texts, b × n.

    A row sums to 1, or to 0 without similar texts.

    Args:
        similarity: Cosines of the texts of b queries with those of all n items.
        queries: Places of the queries, which are no neighbors of themselves.
    """
    b, n = similarity.shape
    others = similarity.copy()
    others[np.arange(b), queries] = 0
    most = min(NEAREST, n) if similarity.any() else 0
    columns = np.argpartition(others, -most, axis=1)[:, n - most :]
    values = np.maximum(np.take_along_axis(others, columns, axis=1), 0)
    total = values.sum(axis=1, keepdims=True)
    shares = np.divide(values, total, out=np.zeros_like(values), where=total > 0)
    rows = np.repeat(np.arange(b), columns.shape[1])
    near = csr_array((shares.ravel(), (rows, columns.ravel())), shape=(b, n))
    near.eliminate_zeros()
    return near
