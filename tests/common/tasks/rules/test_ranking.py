"""Ranking metrics against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.tasks.rules.metrics import auc, hit_rates, mean_ranks

coarse_scores = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30)


@settings(deadline=None)
@given(coarse_scores)
def test_auc_is_the_share_of_pairs_in_the_right_order(rows: list[tuple[int, bool]]) -> None:
    scores, labels = np.array([s for s, _ in rows], float), np.array([p for _, p in rows])
    if labels.all() or not labels.any():
        assert auc(scores, labels) is None
    else:
        wins = [(a > b) + (a == b) / 2 for a in scores[labels] for b in scores[~labels]]
        assert auc(scores, labels) == pytest.approx(sum(wins) / len(wins))


def test_mean_ranks_are_zero_based_and_share_ties() -> None:
    scores, none = np.array([[3.0, 2.0, 1.0], [5.0, 5.0, 5.0]]), np.zeros((2, 3), bool)
    assert mean_ranks(scores, np.array([0, 0]), none) == ((0 + 1) / 2,) * 2
    assert mean_ranks(scores, np.array([2, 1]), none) == ((2 + 1) / 2,) * 2


def test_the_second_mean_rank_excludes_candidates_but_never_the_target() -> None:
    scores, excluded = np.array([[4.0, 3.0, 2.0, 1.0]]), np.array([[True, False, True, False]])
    assert mean_ranks(scores, np.array([2]), excluded) == (2, 1)
    assert mean_ranks(scores, np.array([3]), excluded) == (3, 1)


def test_hit_rates_of_a_list_computed_by_hand() -> None:
    scores, right = np.array([9.0, 8.0, 7.0, 6.0]), np.array([8.0, 6.0])
    assert hit_rates(scores, right, (1, 2, 3, 4, 9), 2) == [0.0, 0.5, 0.5, 1.0, 1.0]
    assert hit_rates(scores, right, (2,), total=4) == [0.25]
    assert hit_rates(np.empty(0), np.empty(0), (5, 10), total=1) == [0.0, 0.0]


@settings(deadline=None)
@given(coarse_scores.filter(lambda rows: any(p for _, p in rows)), st.integers(1, 12))
def test_hit_rates_of_ties_are_the_mean_over_their_orders(rows: list[tuple[int, bool]], top: int) -> None:
    """Check that tied items are equally likely at each of their positions."""
    scores, positive = np.array([s for s, _ in rows], float), np.array([p for _, p in rows])
    probability = [min(1.0, max(0.0, (top - sum(scores > s)) / sum(scores == s))) for s in scores]
    expected = sum(c for c, p in zip(probability, positive, strict=True) if p) / positive.sum()
    assert hit_rates(scores, scores[positive], (top, 40), positive.sum())[0] == pytest.approx(expected)
