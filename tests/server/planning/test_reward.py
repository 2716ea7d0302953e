"""What a round gained, and when rounds gain no more."""

import math

import numpy as np
import pytest

from common.errors import RunError
from server.planning.reward import has_plateaued, improvement


def test_a_falling_error_and_a_rising_score_are_gains() -> None:
    assert improvement(0.35, 0.33) == pytest.approx(0.02)
    assert improvement(0.6, 0.5, rises=True) == pytest.approx(-0.1)


@pytest.mark.parametrize(("before", "after"), [(0.3, math.nan), (math.nan, 0.3), (0.3, math.inf)])
def test_divergence_is_an_error_and_no_gain_of_zero(before: float, after: float) -> None:
    with pytest.raises(RunError, match="diverges"):
        improvement(before, after)


@pytest.mark.parametrize(
    ("rewards", "min_gain", "expected"),
    [
        ([0.1, 0.1], 0.0, False),  # too early to tell
        ([0.1, 0.1, 0.1], 0.0, False),
        ([0.5, -0.1, 0.05, 0.04], 0.0, True),  # never above 0.5 again
        ([0.5, -0.1, 0.05, 0.06], 0.0, False),
        ([0.5, -0.1, 0.05, 0.06], 0.02, True),
        ([-0.1, -0.1, 0.1], 0.0, True),  # never better than before the first round
        ([0.0, 0.0, 0.0], 0.0, True),
    ],
)
def test_a_plateau_is_patience_rounds_without_a_new_best(rewards: list[float], min_gain: float, expected: bool) -> None:
    assert has_plateaued(np.array(rewards), 3, min_gain) is expected
