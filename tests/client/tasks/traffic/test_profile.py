"""The usual reading of the hour of the week, against a slow reference."""

import numpy as np
import pytest

from client.tasks.traffic.profile import profile

WEEK = 168


def slow(values: np.ndarray, slots: np.ndarray, known: np.ndarray, t: int) -> np.ndarray:
    """The other known readings of the slot; of the hour of working days or the weekend; all known; nothing."""
    others = known.copy()
    others[t] = False
    kind = (slots // 24 >= 5) * 24 + slots % 24
    for alike in (others & (slots == slots[t]), others & (kind == kind[t]), known):
        if alike.any():
            return np.asarray(values[alike].mean(axis=0))
    return np.zeros(values.shape[1])


def hours(weeks: float, first: int = 0, variables: int = 1) -> tuple[np.ndarray, np.ndarray]:
    slots = (first + np.arange(int(weeks * WEEK))) % WEEK
    return np.random.default_rng(0).normal(size=(len(slots), variables)), slots


@pytest.mark.parametrize(("weeks", "known_weeks"), [(4.0, 3.0), (3.5, 1.2), (1.5, 1.0), (0.6, 0.3), (0.2, 0.1)])
def test_it_is_the_mean_of_the_other_weeks(weeks: float, known_weeks: float) -> None:
    values, slots = hours(weeks, first=100, variables=2)
    known = np.arange(len(slots)) < known_weeks * WEEK
    known &= np.random.default_rng(1).random(len(slots)) > 0.1
    found = profile(values, slots, known, WEEK)
    np.testing.assert_allclose(found, [slow(values, slots, known, t) for t in range(len(slots))], atol=1e-12)


def test_a_reading_never_tells_itself() -> None:
    """Changing one known reading changes the profile at its slot of other weeks, and not in its own week."""
    values, slots = hours(4)
    known = np.ones(len(slots), bool)
    changed = values.copy()
    changed[WEEK + 5] += 100
    before, after = profile(values, slots, known, WEEK), profile(changed, slots, known, WEEK)
    expected = np.zeros_like(values)
    expected[[5, 2 * WEEK + 5, 3 * WEEK + 5]] = 100 / 3
    np.testing.assert_allclose(after - before, expected, atol=1e-9)


def test_what_is_not_known_does_not_count() -> None:
    values, slots = hours(4)
    known = np.arange(len(slots)) < 3 * WEEK
    later = np.where(known[:, None], values, 1e6)
    np.testing.assert_array_equal(profile(later, slots, known, WEEK), profile(values, slots, known, WEEK))


def test_of_nothing_known_it_is_nothing() -> None:
    values, slots = hours(1, variables=2)
    assert not profile(values, slots, np.zeros(len(slots), bool), WEEK).any()


def test_a_single_known_reading_is_everybodys() -> None:
    values, slots = hours(1)
    known = np.arange(len(slots)) == 30
    np.testing.assert_array_equal(profile(values, slots, known, WEEK), np.full_like(values, values[30, 0]))


def test_of_quarters_of_an_hour_each_has_its_own() -> None:
    """Where no other week has that quarter, the other quarters of that hour and kind of day stand in."""
    slots = np.arange(4 * 24)
    values, known = np.arange(96.0)[:, None], np.ones(96, bool)
    assert profile(values, slots, known, 4 * WEEK)[:4, 0] == pytest.approx([2.0, 5 / 3, 4 / 3, 1.0])
