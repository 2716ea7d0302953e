"""Means of tables of which each client sends some rows: every row is the mean over those who sent it. Pure, NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from common.arrays import Arrays

Rows = Mapping[str, NDArray[np.integer]]
"""Table -> ids of the rows that were sent; a table that is missing was sent whole."""


def by_row(updates: Sequence[Arrays], rows: Sequence[Rows], weights: Sequence[float]) -> list[Arrays]:
    """Updates whose weighted mean over all clients is, in each row, the weighted mean over the clients that sent it.

    Row i of Δ_k times W/W_i, with W = Σ_k w_k and W_i the same over those who sent row i: methods need not know.

    Args:
        updates: Δ_k with whole tables (n × d), zero in rows that were not sent.
        rows: Which those were.
        weights: w_k.
    """
    total, sent = float(sum(weights)), {name for one in rows for name in one}
    factors = {}
    for name in sorted(sent):
        weight = np.zeros(len(updates[0][name]))
        for one, w in zip(rows, weights, strict=True):
            weight[one.get(name, slice(None))] += w
        factors[name] = np.divide(total, weight, out=np.zeros_like(weight), where=weight > 0)[:, None]
    return [{n: (a * factors[n]).astype(a.dtype) if n in factors else a for n, a in u.items()} for u in updates]
