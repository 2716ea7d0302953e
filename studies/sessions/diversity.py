"""Overlap of clients' items, the paper's measure of non-IID data (§2.4)."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from client.tasks.sessions.data.visitors import Visitor


def jaccard_distance(item_sets: Sequence[AbstractSet[int]], pairs: int, rng: np.random.Generator) -> float:
    """Return the mean Jaccard distance of pairs of sets, from 0 (all alike) to 1 (nothing shared) (§2.4).

    JD = 2/(m(m−1)) Σ_{i<j} (1 − |I_i ∩ I_j| / |I_i ∪ I_j|).

    Exact if there are at most `pairs` pairs, else the mean of so many drawn with replacement, which is unbiased. Two
    empty sets are alike; fewer than two sets have distance 0.
    """
    m = len(item_sets)
    if m < 2:
        return 0.0
    first, second = np.triu_indices(m, 1) if m * (m - 1) // 2 <= pairs else _drawn(m, pairs, rng)
    chosen = zip(first.tolist(), second.tolist(), strict=True)
    return float(np.mean([_distance(item_sets[i], item_sets[j]) for i, j in chosen]))


def visited(visitor: Visitor) -> frozenset[int]:
    """I_i, the distinct items of a visitor's sessions."""
    return frozenset(item for session in visitor.sessions for item in session.tolist())


def _drawn(m: int, pairs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Uniform over the pairs of two different sets."""
    first = rng.integers(m, size=pairs)
    return first, (first + rng.integers(1, m, size=pairs)) % m


def _distance(a: AbstractSet[int], b: AbstractSet[int]) -> float:
    union = len(a | b)
    return 1 - len(a & b) / union if union else 0.0
