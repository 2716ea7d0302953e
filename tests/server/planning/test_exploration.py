"""Stage 1: order of arms, and the estimates M(T₀), ÔPT and Z."""

import math
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.planning.bandit import best_mix, confidence, limit_t0, price_bound, select_candidates, select_due, stage_of

COSTS = np.array([1.0, 1.125, 1.25])


def test_stages_have_kt0_and_t0_rounds() -> None:
    stages = [stage_of(t, arms=5, t0=5) for t in range(40)]
    assert (stages.count("1a"), stages.count("1b"), stages.index("2")) == (25, 5, 30)


def test_stage_1_has_at_most_half_of_the_rounds() -> None:
    assert [limit_t0(5, 5, rounds) for rounds in (100, 60, 59, 24, 12, 3)] == [5, 5, 4, 2, 1, 1]


@given(st.integers(1, 5), st.integers(1, 4), st.randoms(use_true_random=False))
def test_blocks_play_every_arm_once_in_each(k: int, t0: int, random: Random) -> None:
    played: list[int] = []
    for _ in range(k * t0):
        played.append(random.choice(sorted(select_due(played, k, t0, "blocks"))))
    assert all(sorted(played[i : i + k]) == list(range(k)) for i in range(0, k * t0, k))


def test_the_order_of_the_code_is_the_most_expensive_arm_first() -> None:
    played: list[int] = []
    for _ in range(6):
        played += select_due(played, 3, 2, "code")
    assert played == [2, 2, 1, 1, 0, 0]


def test_an_unaffordable_due_arm_is_replaced_by_any_affordable_arm() -> None:
    assert select_candidates({1, 2}, np.array([0, 1])).tolist() == [1]
    assert select_candidates({2}, np.array([0, 1])).tolist() == [0, 1]


def test_m_equals_the_specification() -> None:
    assert confidence(np.zeros(5), 5, 100, 943) == pytest.approx(3.03, abs=0.005)
    residuals = np.array([0.1, -0.2])
    expected = math.sqrt(3 / 2 * 0.05 + 4 * math.log(10 * 7) / 2)
    assert confidence(residuals, 3, 10, 7) == pytest.approx(expected)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=6), st.floats(0.9, 1.4))
def test_the_best_mix_is_the_optimum_over_corners_and_edges(numbers: list[float], allowance: float) -> None:
    predicted = np.array(numbers).reshape(2, 3)
    best = best_mix(predicted, COSTS, allowance)
    assert best <= predicted.max() + 1e-9
    assert best == pytest.approx(by_corners(predicted, max(allowance, 1.0)), abs=1e-7)


def by_corners(predicted: np.ndarray, allowance: float) -> float:
    """Return the optimum over mixtures of at most two pure choices: one constraint, a product of simplices."""
    pure = [
        (np.mean([predicted[t, a] for t, a in enumerate(arms)]), np.mean(COSTS[list(arms)]))
        for arms in product(range(3), repeat=2)
    ]
    best = max(value for value, cost in pure if cost <= allowance + 1e-12)
    for (v, c), (w, d) in product(pure, repeat=2):
        if c < allowance < d:
            best = max(best, v + (w - v) * (allowance - c) / (d - c))
    return float(best)


def test_a_large_allowance_selects_the_best_arm_of_each_round() -> None:
    predicted = np.array([[0.1, 0.4, 0.2], [-0.5, -0.1, -0.3]])
    assert best_mix(predicted, COSTS, 7.0) == pytest.approx((0.4 - 0.1) / 2)


def test_z_is_equation_10_or_the_cap_and_not_negative() -> None:
    assert price_bound(0.2, 3.0, 0.9, "paper") == pytest.approx(3.2)
    assert price_bound(-2.0, 1.0, 0.9, "paper") == 0
    assert price_bound(0.2, 3.0, 0.9, "cap") == 0.9
