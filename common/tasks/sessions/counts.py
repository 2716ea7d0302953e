"""Counts of sequential rules i → j (j is clicked after i in a session), and the features of an item.

Each ordered pair of clicks of a session adds 1/distance (Ludewig & Jannach 2018). Counts are sparse: sorted keys i·V + j.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from common.arrays import Array, Arrays
from common.errors import WireError
from common.tasks.counts import MIN_COUNT, check_sparse, sum_by_key
from common.tasks.sessions.vocabulary import Clicks

KEYS, VALUES, DENSE = "rules.keys", "rules.values", "rules.dense"
FADING = 0.8
"""Weight per step of age of a click: .8^age."""
MAX_RULE_ITEMS = 200
"""Maximum number of items that a session's rules score; more cost time and do not change the ranking."""


def count_rules(sessions: Iterable[Clicks], items: int) -> Arrays:
    """Count the rules of one client: keys int64 (n), values float32 (n)."""
    counts: defaultdict[int, float] = defaultdict(float)
    for session in sessions:
        clicks = session.tolist()
        for number, later in enumerate(clicks):
            for distance, earlier in enumerate(reversed(clicks[:number]), start=1):
                counts[earlier * items + later] += 1 / distance
    keys = np.array(sorted(counts), np.int64)
    return {KEYS: keys, VALUES: np.array([counts[int(key)] for key in keys], np.float32)}


def add_rules(members: Sequence[Arrays], weights: Sequence[float] | None = None) -> Arrays:
    """Compute Σ wᵢ countsᵢ, wᵢ = 1 by default; rules whose sum is zero are left out."""
    scaled = [p[VALUES] * w for p, w in zip(members, weights or [1.0] * len(members), strict=True)]
    keys, values = sum_by_key([p[KEYS] for p in members], scaled)
    return {KEYS: keys, VALUES: values.astype(np.float32)}


def dense_rules(items: int) -> Arrays:
    """Return zero counts of all ordered pairs of items, for secure sums."""
    return {DENSE: np.broadcast_to(np.float32(0), (items, items))}


def to_dense(counts: Arrays, template: Arrays) -> Arrays:
    """Return a client's counts of all ordered pairs of items."""
    dense = np.zeros(template[DENSE].shape, np.float32)
    dense.ravel()[counts[KEYS]] = counts[VALUES]
    return {DENSE: dense}


def to_sparse(sums: Arrays, noise: float = 0.0) -> Arrays:
    """Return dense sums as sorted keys and values; those below `MIN_COUNT` are rounding errors."""
    values = sums[DENSE].ravel()
    keys = np.flatnonzero(values > MIN_COUNT).astype(np.int64)
    return {KEYS: keys, VALUES: values[keys].astype(np.float32)}


def check_rules(counts: Arrays, items: int) -> None:
    """Check a client's counts.

    Raises:
        WireError: Arrays have other names or shapes, keys are out of range or order, or values are not positive.
    """
    if set(counts) != {KEYS, VALUES} or counts[KEYS].shape != counts[VALUES].shape or counts[KEYS].ndim != 1:
        raise WireError("counts: keys and values of rules do not match")
    check_sparse(counts[KEYS], counts[VALUES], items, "rules")


@dataclass(frozen=True)
class SharedRules:
    """Summed counts of sequential rules, with look-up by a session's clicks."""

    keys: Array
    values: Array
    items: int

    def scores(self, prefix: Clicks) -> tuple[Array, Array]:
        """Return the items of highest score and their scores Σ .8^age · rule(click → item)."""
        ranges: list[Array] = []
        scores: list[Array] = []
        for age, item in enumerate(reversed(prefix.tolist())):
            first, last = np.searchsorted(self.keys, (item * self.items, (item + 1) * self.items))
            ranges.append(self.keys[first:last] - item * self.items)
            scores.append(self.values[first:last] * FADING**age)
        items, index = np.unique(np.concatenate(ranges), return_inverse=True)
        totals = np.bincount(index, np.concatenate(scores), minlength=len(items))
        if len(items) <= MAX_RULE_ITEMS:
            return items, totals
        best = np.argsort(-totals, kind="stable")[:MAX_RULE_ITEMS]
        return items[best], totals[best]


FEATURES = ("own_frequency", "own_bigram", "session_recency", "last_item", "shared_rules")
"""The F features of an item.

log(1 + visits); log(1 + visits right after the last item); .8^(clicks ago) if the session has it; 1 if it is the last
item; log(1 + summed sequential rules) if counts are shared.
"""
