"""Reward of a round, detection of a plateau, and contexts of rounds."""

import math

import numpy as np
import pytest

from common.errors import RunError
from server.planning.reward import has_plateaued, improvement, item_matrix, largest_table, singular_values


def test_a_lower_error_and_a_higher_score_are_positive_rewards() -> None:
    assert improvement(0.35, 0.33) == pytest.approx(0.02)
    assert improvement(0.6, 0.5, higher_is_better=True) == pytest.approx(-0.1)


@pytest.mark.parametrize(("before", "after"), [(0.3, math.nan), (math.nan, 0.3), (0.3, math.inf)])
def test_divergence_is_an_error(before: float, after: float) -> None:
    with pytest.raises(RunError, match="diverged"):
        improvement(before, after)


@pytest.mark.parametrize(
    ("rewards", "min_gain", "expected"),
    [
        ([0.1, 0.1], 0.0, False),  # fewer rounds than patience
        ([0.1, 0.1, 0.1], 0.0, False),
        ([0.5, -0.1, 0.05, 0.04], 0.0, True),  # not above 0.5 again
        ([0.5, -0.1, 0.05, 0.06], 0.0, False),
        ([0.5, -0.1, 0.05, 0.06], 0.02, True),
        ([-0.1, -0.1, 0.1], 0.0, True),  # not above the initial model
        ([0.0, 0.0, 0.0], 0.0, True),
    ],
)
def test_a_plateau_is_patience_rounds_without_a_new_maximum(
    rewards: list[float], min_gain: float, expected: bool
) -> None:
    assert has_plateaued(np.array(rewards), 3, min_gain) is expected


RNG = np.random.default_rng(1)


@pytest.mark.parametrize("shape", [(40, 8), (8, 300), (300, 200), (90, 500)])
def test_they_are_the_largest_in_descending_order(shape: tuple[int, int]) -> None:
    matrix = RNG.normal(size=shape)
    expected = np.linalg.svd(matrix, compute_uv=False)[:5]
    values = singular_values(matrix, 5)
    assert values == pytest.approx(expected)
    assert (np.diff(values) <= 0).all()


def test_the_order_of_clients_does_not_matter_and_calls_are_deterministic() -> None:
    matrix = (RNG.uniform(size=(150, 220)) < 0.1).astype(np.float64)
    assert singular_values(matrix[::-1], 5) == pytest.approx(singular_values(matrix, 5))
    assert np.array_equal(singular_values(matrix, 5), singular_values(matrix, 5))


def test_missing_singular_values_are_0() -> None:
    rank_one = np.outer(np.ones(100), np.ones(90)).astype(np.float32)
    assert singular_values(rank_one, 3) == pytest.approx([np.sqrt(9000), 0, 0], abs=1e-3)
    assert singular_values(np.array([[3.0]]), 4).tolist() == [3, 0, 0, 0]
    assert singular_values(np.zeros((100, 100)), 2).tolist() == [0, 0]
    assert singular_values(np.zeros((0, 7)), 2).tolist() == [0, 0]
    assert singular_values(np.ones((100, 100)), 0).shape == (0,)


def test_a_non_finite_matrix_is_an_error() -> None:
    with pytest.raises(RunError, match="non-finite"):
        singular_values(np.array([[1.0, np.nan]]), 1)


def test_the_item_matrix_has_a_row_per_client() -> None:
    matrix = item_matrix([np.array([0, 3]), np.array([], np.int64), np.array([3])], 5)
    assert matrix.tolist() == [[1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]


def test_the_context_is_of_the_largest_changed_table() -> None:
    head, items, bias = np.zeros((9, 9)), np.ones((4, 2)), np.float64(3.0)
    update = {"head": head, "items": items, "bias": np.asarray(bias)}
    assert largest_table(update).tolist() == items.tolist()
    assert largest_table({"bias": np.asarray(bias)}).tolist() == [[3.0]]
    assert largest_table({"head": head}).shape == (9, 9), "no array changed"
    assert largest_table({"kernel": np.ones((3, 2, 2))}).shape == (3, 4)
