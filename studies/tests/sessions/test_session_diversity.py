"""The Jaccard distance of §2.4."""

import numpy as np
import pytest

from client.tasks.sessions.data.visitors import Visitor, as_clicks
from studies.sessions.diversity import jaccard_distance, visited

SETS = [frozenset({1, 2, 3}), frozenset({2, 3, 4}), frozenset({9})]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_by_hand() -> None:
    """1 − 2/4, 1 and 1: their mean is 5/6."""
    assert jaccard_distance(SETS, 3, rng()) == pytest.approx(5 / 6)


def test_edges() -> None:
    assert jaccard_distance([], 10, rng()) == jaccard_distance(SETS[:1], 10, rng()) == 0
    assert jaccard_distance([frozenset(), frozenset()], 10, rng()) == 0
    assert jaccard_distance([frozenset(), SETS[0]], 10, rng()) == 1


def test_a_sample_of_pairs_is_near_the_whole_and_seeded() -> None:
    draw = np.random.default_rng(1)
    sets = [frozenset(draw.choice(30, size=draw.integers(1, 20)).tolist()) for _ in range(60)]
    exact = jaccard_distance(sets, 10_000, rng())
    assert jaccard_distance(sets, 1_700, rng()) == pytest.approx(exact, abs=0.015)
    assert jaccard_distance(sets, 100, rng()) == jaccard_distance(sets, 100, rng()) != exact


def test_items_of_a_visitor() -> None:
    assert visited(Visitor("ann", (as_clicks([1, 2, 1]), as_clicks([2, 5])))) == {1, 2, 5}
