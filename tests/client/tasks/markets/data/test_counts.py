"""What a market adds to the sums, and how much of it is one user's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.tasks.markets.data.graph import MOST, bounded_counts, graph_counts, graph_of
from client.tasks.markets.data.markets import Market, as_ratings, no_rows
from common.errors import DataError
from common.tasks.markets.pairs import DEGREES, KEYS, VALUES, check_pairs

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
