"""Split of a home into training and held-out rules by (seed, user) (algorithms.md §1.3)."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from client.data.partition import floor_share, own_rng
from client.tasks.rules.data.homes import Home, as_edges
from common.tasks.rules.options import RulesOptions
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


@dataclass(frozen=True, eq=False)
class Examples:
    """Rules and sampled non-rules of one home."""

    positives: Edges
    negatives: Edges


@dataclass(frozen=True, eq=False)
class SplitHome:
    """A home's examples; messages pass along `train.positives` only."""

    home: Home
    train: Examples
    """Its negatives are those of all pools."""
    validation: Examples
    test: Examples


def split_homes(homes: Iterable[Home], relations: int, options: RulesOptions, seed: int) -> tuple[SplitHome, ...]:
    """Split every home; omit complete graphs and, depending on `small_users`, homes without a test rule."""
    splits = (split_home(home, relations, options, seed) for home in homes)
    return tuple(
        split
        for split in splits
        if not (_is_complete(split) or (options.small_users == "drop" and not len(split.test.positives)))
    )


def split_home(home: Home, relations: int, options: RulesOptions, seed: int) -> SplitHome:
    """Shuffle, then take the first share for test, the next for validation, the rest for training.

    Held-out negatives come from the first pool alone, and before anything that depends on the number of pools or the
    validation share is drawn: a home's test examples are the same whatever these are.
    """
    rng = own_rng(seed, home.name)
    rules, pool = rng.permutation(home.rules), sample_pool(home, relations, rng)[: len(home.rules)]
    test = floor_share(options.test_share, len(rules))
    kept = test + floor_share(options.validation_share, len(rules) - test)

    more = [_another_pool(home, relations, pool[:kept], len(rules) - kept, rng) for _ in range(options.negatives - 1)]
    return SplitHome(
        home,
        train=Examples(rules[kept:], np.concatenate([pool[kept:], *more])),
        validation=Examples(rules[test:kept], pool[test:kept]),
        test=Examples(rules[:test], pool[:test]),
    )


def _another_pool(home: Home, relations: int, held_out: Edges, size: int, rng: np.random.Generator) -> Edges:
    """Return up to `size` further training negatives, none of them held out."""
    pool = sample_pool(home, relations, rng)
    reserved = set(map(tuple, held_out.tolist()))
    fresh = np.array([tuple(edge) not in reserved for edge in pool.tolist()], dtype=bool)
    chosen: Edges = pool[fresh][:size]
    return chosen


def _is_complete(split: SplitHome) -> bool:
    return bool(len(split.home.rules)) and not sum(
        len(p.negatives) for p in (split.train, split.validation, split.test)
    )
