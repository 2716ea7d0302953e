"""Counts in reasons: coarse, not small, not noisy."""

import math

import pytest

from client.tasks.lists import about


@pytest.mark.parametrize(
    ("count", "noise_std", "text"),
    [
        (34, 0, "about 30"),
        (35, 0, "about 40"),
        (1234, 0, "about 1,230"),
        (10, 0, "about 10"),
        (9.9, 0, ""),
        (-50, 0, ""),
        (40, 9.9, "about 40"),
        (40, 10, ""),
        (40, math.nan, ""),
        (math.nan, 0, ""),
        (math.inf, 0, ""),
    ],
)
def test_a_count_is_stated_in_tens_if_noise_hardly_changes_it(count: float, noise_std: float, text: str) -> None:
    assert about(count, noise_std) == text
