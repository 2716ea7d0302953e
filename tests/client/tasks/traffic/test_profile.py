"""Weekly profile against a slow reference."""

import numpy as np
import pytest

from client.tasks.traffic.baseline import profile

WEEK = 168


def slow(values: np.ndarray, slots: np.ndarray, usable: np.ndarray, t: int) -> np.ndarray:
    """Return the mean of the slot's other usable readings, else of the hour's, else of all, else 0."""
    is_other = usable.copy()
    is_other[t] = False
    kind = (slots // 24 >= 5) * 24 + slots % 24
    for alike in (is_other & (slots == slots[t]), is_other & (kind == kind[t]), usable):
        if alike.any():
            return np.asarray(values[alike].mean(axis=0))
    return np.zeros(values.shape[1])


def hours(weeks: float, first: int = 0, variables: int = 1) -> tuple[np.ndarray, np.ndarray]:
    slots = (first + np.arange(int(weeks * WEEK))) % WEEK
    return np.random.default_rng(0).normal(size=(len(slots), variables)), slots


@pytest.mark.parametrize(("weeks", "usable_weeks"), [(4.0, 3.0), (3.5, 1.2), (1.5, 1.0), (0.6, 0.3), (0.2, 0.1)])
def test_it_is_the_mean_of_the_other_weeks(weeks: float, usable_weeks: float) -> None:
    values, slots = hours(weeks, first=100, variables=2)
    usable = np.arange(len(slots)) < usable_weeks * WEEK
    usable &= np.random.default_rng(1).random(len(slots)) > 0.1
    weekly = profile(values, slots, usable, WEEK)
    np.testing.assert_allclose(weekly, [slow(values, slots, usable, t) for t in range(len(slots))], atol=1e-12)


def test_a_reading_is_not_part_of_its_own_profile() -> None:
    """Check that one changed reading changes the profile at its slot of other weeks only."""
    values, slots = hours(4)
    usable = np.ones(len(slots), bool)
    changed = values.copy()
    changed[WEEK + 5] += 100
    before, after = profile(values, slots, usable, WEEK), profile(changed, slots, usable, WEEK)
    expected = np.zeros_like(values)
    expected[[5, 2 * WEEK + 5, 3 * WEEK + 5]] = 100 / 3
    np.testing.assert_allclose(after - before, expected, atol=1e-9)


def test_unusable_readings_do_not_count() -> None:
    values, slots = hours(4)
    usable = np.arange(len(slots)) < 3 * WEEK
    later = np.where(usable[:, None], values, 1e6)
    np.testing.assert_array_equal(profile(later, slots, usable, WEEK), profile(values, slots, usable, WEEK))


def test_without_usable_readings_the_profile_is_zero() -> None:
    values, slots = hours(1, variables=2)
    assert not profile(values, slots, np.zeros(len(slots), bool), WEEK).any()


def test_a_single_usable_reading_is_the_whole_profile() -> None:
    values, slots = hours(1)
    usable = np.arange(len(slots)) == 30
    np.testing.assert_array_equal(profile(values, slots, usable, WEEK), np.full_like(values, values[30, 0]))


def test_every_quarter_of_an_hour_has_its_own_slot() -> None:
    """Check that a quarter without other weeks has the mean of the other quarters of its hour."""
    slots = np.arange(4 * 24)
    values, usable = np.arange(96.0)[:, None], np.ones(96, bool)
    assert profile(values, slots, usable, 4 * WEEK)[:4, 0] == pytest.approx([2.0, 5 / 3, 4 / 3, 1.0])
