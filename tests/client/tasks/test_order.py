"""Order, diversity and rounding of recommendations."""

import numpy as np
import pytest

from client.tasks.lists import best_first, diversify, two_digits


def test_ties_are_broken_by_index_and_nan_is_left_out() -> None:
    scores = np.array([[0.5, np.nan, 0.9], [0.5, 0.9, 1.0]])
    allowed = np.array([[True, True, True], [True, True, False]])
    assert best_first(scores, allowed).tolist() == [2, 4, 0, 3]


def test_diversification_puts_off_candidates_like_those_chosen() -> None:
    alike = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], float)
    assert diversify(alike, 0.5, 3).tolist() == [0, 2, 1]
    assert diversify(alike, 1.0, 3).tolist() == [0, 1, 2]
    assert diversify(np.zeros((0, 0)), 0.5, 3).tolist() == []


@pytest.mark.parametrize(
    ("score", "shown"), [(0.996, 1.0), (0.123, 0.12), (-3.14159, -3.14), (0.00456, 0.0046), (0, 0)]
)
def test_scores_have_two_digits(score: float, shown: float) -> None:
    assert two_digits(score) == shown
