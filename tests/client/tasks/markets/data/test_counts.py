"""What a market adds to the sums, and how much of it is one user's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, norm

from client.tasks.markets.data.graph import MOST, PASSING, bounded_counts, graph_counts, graph_of, noised
from client.tasks.markets.data.markets import Market, as_ratings, no_rows
from common.errors import DataError
from common.tasks.markets.counts import DEGREES, KEYS, VALUES, add_pairs, check_pairs

ITEMS = 20
BASKETS = st.lists(st.sets(st.integers(0, ITEMS - 1), min_size=1, max_size=14), min_size=1, max_size=6)


def ratings(baskets: list[set[int]]) -> np.ndarray:
    return as_ratings(np.array([(user, item) for user, basket in enumerate(baskets) for item in basket]))


def test_a_graph_s_counts_are_its_weights_and_degrees() -> None:
    graph = graph_of(Market("uk", ratings([{3, 5, 9}, {3, 5}, {3, 9}]), no_rows()), 2)
    counts = graph_counts(graph, ITEMS)
    check_pairs(counts, ITEMS)
    assert counts[KEYS].tolist() == [3 * ITEMS + 5, 3 * ITEMS + 9]
    assert counts[VALUES].tolist() == [2, 2]
    assert {k: int(d) for k, d in enumerate(counts[DEGREES]) if d} == {3: 2, 5: 1, 9: 1}


@given(BASKETS)
def test_one_user_adds_a_vector_of_norm_one(baskets: list[set[int]]) -> None:
    for basket in baskets:
        counts = bounded_counts(ratings([basket]), ITEMS, np.random.default_rng(0))
        vector = np.concatenate([counts[VALUES], counts[DEGREES]])
        assert np.linalg.norm(vector) == pytest.approx(1, rel=1e-5)
        used = set(np.flatnonzero(counts[DEGREES]).tolist())
        assert used <= basket
        assert len(used) == min(MOST, len(basket))
        assert len(counts[KEYS]) == len(used) * (len(used) - 1) // 2
        check_pairs(counts, ITEMS)


def test_bounded_counts_add_up_over_users() -> None:
    both = bounded_counts(ratings([{1, 2}, {1, 2, 3}]), ITEMS, np.random.default_rng(0))
    assert both[KEYS].tolist() == [ITEMS + 2, ITEMS + 3, 2 * ITEMS + 3]
    np.testing.assert_allclose(both[VALUES], [1 / np.sqrt(3) + 1 / np.sqrt(6), 1 / np.sqrt(6), 1 / np.sqrt(6)])


def test_lists_name_nobody_to_bound() -> None:
    with pytest.raises(DataError, match="bound-users=false"):
        bounded_counts(no_rows(), ITEMS, np.random.default_rng(0))


def test_private_counts_are_those_that_dense_noise_lets_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a lower bar, so that there is something to count: every pair is there as often and as high as its own noise says."""
    bar, noise, draws, size = 1.0, 0.5, 4000, 6
    monkeypatch.setattr("client.tasks.markets.data.graph.PASSING", bar)
    counts = bounded_counts(ratings([{0, 1}, {0, 1}, {0, 1}, {2, 3}]), size, np.random.default_rng(0))
    exact = dict(zip(counts[KEYS].tolist(), counts[VALUES].tolist(), strict=True))
    rng = np.random.default_rng(1)
    sent: dict[int, list[float]] = {}
    for _ in range(draws):
        one = noised(counts, size, noise, rng)
        check_pairs(one, size)
        for key, value in zip(one[KEYS].tolist(), one[VALUES].tolist(), strict=True):
            sent.setdefault(key, []).append(value)
    for key in (a * size + b for a in range(size) for b in range(a + 1, size)):
        expected = norm.sf(bar * noise, exact.get(key, 0.0), noise)
        assert len(sent[key]) / draws == pytest.approx(expected, abs=5 * np.sqrt(expected * (1 - expected) / draws))
    strangers = [v for key, values in sent.items() if key not in exact for v in values]
    passed = norm.sf(bar)
    assert kstest(strangers, lambda v: 1 - norm.sf(v / noise) / passed).pvalue > 1e-3
    assert (
        kstest(sent[1], lambda v: 1 - norm.sf(v, exact[1], noise) / norm.sf(bar * noise, exact[1], noise)).pvalue > 1e-3
    )


def test_with_next_to_no_noise_counts_stay_and_nothing_joins_them() -> None:
    counts = bounded_counts(ratings([{1, 2, 5}, {1, 2}]), ITEMS, np.random.default_rng(0))
    found = noised(counts, ITEMS, 1e-9, np.random.default_rng(1))
    assert found[KEYS].tolist() == counts[KEYS].tolist()
    for name in (VALUES, DEGREES):
        np.testing.assert_allclose(found[name], counts[name], rtol=1e-5)
    assert norm.sf(PASSING) * 8304**2 / 2 == pytest.approx(117, abs=1), "pairs that pass by noise alone, of XMarket's"


def test_a_user_moves_large_counts_by_no_more_than_its_share() -> None:
    """In float32 a count of 262,145 moves by steps of 1/32, which one user's share would be rounded to."""
    crowd, size = np.stack([np.arange(262_145), np.zeros(262_145, np.int64)], axis=1), 4
    one = np.array([[300_000, item] for item in range(3)])
    counts = [
        bounded_counts(rows, size, np.random.default_rng(0), np.float64) for rows in (crowd, np.vstack([crowd, one]))
    ]
    with_one, without = add_pairs(counts[1:], dtype=np.float64), add_pairs(counts[:1], dtype=np.float64)
    moved = with_one[DEGREES] - without[DEGREES]
    assert np.square(moved).sum() + np.square(with_one[VALUES]).sum() == pytest.approx(1, abs=1e-9)
