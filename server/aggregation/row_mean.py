"""Row-wise means of tables: each row is averaged over the clients that sent it. Pure, NumPy."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from common.arrays import Arrays

Rows = Mapping[str, NDArray[np.integer]]
"""Table -> ids of the rows that were sent; a missing table was sent in full."""


def rescale_rows(updates: Sequence[Arrays], rows: Sequence[Rows], weights: Sequence[float]) -> list[Arrays]:
    """Return updates whose weighted mean is, per row, the weighted mean over the row's senders.

    Row i of Δ_k is multiplied by W/W_i, with W = Σ_k w_k and W_i the same sum over the senders of row i. Methods need no
    change.

    Args:
        updates: Δ_k with full tables (n × d), zero in rows that were not sent.
        rows: Ids of the sent rows.
        weights: w_k.
    """
    total, sent = float(sum(weights)), {name for ids in rows for name in ids}
    factors = {}
    for name in sorted(sent):
        weight = np.zeros(len(updates[0][name]))
        for ids, w in zip(rows, weights, strict=True):
            weight[ids.get(name, slice(None))] += w
        factors[name] = np.divide(total, weight, out=np.zeros_like(weight), where=weight > 0)[:, None]
    return [{n: (a * factors[n]).astype(a.dtype) if n in factors else a for n, a in u.items()} for u in updates]
