"""Reward of a round, and detection of a plateau."""

import math

import numpy as np
import pytest

from common.errors import RunError
from server.planning.reward import has_plateaued, improvement


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
