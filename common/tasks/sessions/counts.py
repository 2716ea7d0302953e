"""Sequential rules i → j, "who clicked i clicked j later in the session", summed over clients where all allow counts.

Ludewig & Jannach 2018: each pair of clicks of a session adds 1/(their distance). Counts are sparse: sorted keys i·V + j.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from common.arrays import Array, Arrays
from common.errors import WireError
from common.tasks.sessions.vocabulary import Clicks
from common.tasks.sparse_counts import added, check_sparse

KEYS, VALUES = "rules.keys", "rules.values"
FADING = 0.8
"""Weight of a click by how many clicks ago it was: .8^age."""
STRONGEST = 200
"""Items a session's rules may speak of: the best ones, since the long tail costs time and ranks nothing."""


def count_rules(sessions: Iterable[Clicks], items: int) -> Arrays:
    """One client's counts: keys int64 (n), values float32 (n)."""
    counts: defaultdict[int, float] = defaultdict(float)
    for session in sessions:
        clicks = session.tolist()
        for place, later in enumerate(clicks):
            for distance, earlier in enumerate(reversed(clicks[:place]), start=1):
                counts[earlier * items + later] += 1 / distance
    keys = np.array(sorted(counts), np.int64)
    return {KEYS: keys, VALUES: np.array([counts[int(key)] for key in keys], np.float32)}


def add_rules(parts: Sequence[Arrays], weights: Sequence[float] | None = None) -> Arrays:
    """Σ wᵢ countsᵢ, wᵢ = 1 unless given; rules whose sum is zero are gone."""
    scaled = [p[VALUES] * w for p, w in zip(parts, weights or [1.0] * len(parts), strict=True)]
    keys, values = added([p[KEYS] for p in parts], scaled)
    return {KEYS: keys, VALUES: values.astype(np.float32)}


def check_rules(counts: Arrays, items: int) -> None:
    """Accept a client's counts.

    Raises:
        WireError: Other arrays, keys out of range or order, or values that are no positive numbers.
    """
    if set(counts) != {KEYS, VALUES} or counts[KEYS].shape != counts[VALUES].shape or counts[KEYS].ndim != 1:
        raise WireError("counts: not a list of rules with as many values")
    check_sparse(counts[KEYS], counts[VALUES], items, "rules")


@dataclass(frozen=True)
class SharedRules:
    """Everybody's counts, looked up by the clicks so far."""

    keys: Array
    values: Array
    items: int

    def scores(self, prefix: Clicks) -> tuple[Array, Array]:
        """The strongest items and their Σ .8^age · rule(click → item)."""
        found: list[Array] = []
        scores: list[Array] = []
        for age, item in enumerate(reversed(prefix.tolist())):
            first, last = np.searchsorted(self.keys, (item * self.items, (item + 1) * self.items))
            found.append(self.keys[first:last] - item * self.items)
            scores.append(self.values[first:last] * FADING**age)
        items, place = np.unique(np.concatenate(found), return_inverse=True)
        totals = np.bincount(place, np.concatenate(scores), minlength=len(items))
        if len(items) <= STRONGEST:
            return items, totals
        best = np.argsort(-totals, kind="stable")[:STRONGEST]
        return items[best], totals[best]
