"""Sampled non-rules (algorithms.md §1.3)."""

import numpy as np

from client.tasks.rules.data.homes import Home, as_edges
from common.tasks.rules.vocabulary import Edges


def sample_pool(home: Home, relations: int, rng: np.random.Generator) -> Edges:
    """Sample one pool of negatives: distinct triples that are no rules of the home; none without rules.

    (a) Every ordered pair of different nodes without a rule, with a random relation; (b) for every rule, its pair with
    a random relation not on that pair. A pair that holds all relations adds nothing.
    """
    if not len(home.rules):
        return home.rules.copy()
    nodes, rules = range(len(home.devices)), home.rules.tolist()
    taken: dict[tuple[int, int], set[int]] = {}
    for u, v, r in rules:
        taken.setdefault((u, v), set()).add(r)

    empty = [(u, v) for u in nodes for v in nodes if u != v and (u, v) not in taken]
    relation = rng.integers(relations, size=len(empty)).tolist()
    unlike = [(u, v, r) for (u, v), r in zip(empty, relation, strict=True)]
    for u, v, _ in rules:
        absent = [r for r in range(relations) if r not in taken[u, v]]
        if absent:
            unlike.append((u, v, absent[rng.integers(len(absent))]))
    return rng.permutation(as_edges(unlike))
