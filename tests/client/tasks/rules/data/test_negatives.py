"""Sampled non-rules."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from client.tasks.rules.data.homes import Device, Home, NonRules, as_edges

RELATIONS = 4


def sample(home: Home, rng: np.random.Generator) -> np.ndarray:
    unlike = NonRules(home, RELATIONS)
    return unlike.triples(unlike.sample(rng))


def home(nodes: int, *rules: tuple[int, int, int]) -> Home:
    return Home("ann", tuple(Device(str(k), 0) for k in range(nodes)), as_edges(rules))


@settings(deadline=None)
@given(
    st.integers(1, 5).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.sets(
                st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(0, RELATIONS - 1)), max_size=25
            ),
        )
    ),
    st.integers(0, 2**32 - 1),
)
def test_a_pool_holds_a_non_rule_for_every_empty_pair_and_about_one_for_every_rule(
    case: tuple[int, set[tuple[int, int, int]]], seed: int
) -> None:
    nodes, rules = case
    pool = {tuple(edge) for edge in sample(home(nodes, *rules), np.random.default_rng(seed)).tolist()}
    pairs = Counter((u, v) for u, v, _ in rules)
    assert not pool & rules
    if rules:
        drawn = Counter((u, v) for u, v, _ in pool)
        empty = {(u, v) for u in range(nodes) for v in range(nodes) if u != v} - set(pairs)
        assert {pair for pair in drawn if pair not in pairs} == empty
        assert all(drawn[pair] == 1 for pair in empty)
        assert all((1 if on < RELATIONS else 0) <= drawn[pair] <= min(on, RELATIONS - on) for pair, on in pairs.items())


def test_a_home_without_rules_has_no_pool() -> None:
    assert sample(home(3), np.random.default_rng(0)).shape == (0, 3)


def test_a_complete_graph_has_no_pool() -> None:
    full = home(1, *((0, 0, r) for r in range(RELATIONS)))
    assert sample(full, np.random.default_rng(0)).shape == (0, 3)


def test_relations_are_drawn_evenly() -> None:
    rng = np.random.default_rng(0)
    drawn = [int(sample(home(2, (0, 1, 0)), rng)[:, 2][k]) for _ in range(1000) for k in range(2)]
    counts = Counter(drawn)  # (b) never draws 0, so 0 comes from (a) alone: 1000/4; the others also 1000/3
    assert abs(counts[0] - 250) < 60
    assert all(abs(counts[r] - (250 + 1000 / 3)) < 80 for r in (1, 2, 3))
