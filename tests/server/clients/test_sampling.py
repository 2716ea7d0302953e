"""Cohorts: a function of seed, round and names only."""

from collections import Counter

import pytest

from server.clients.roster import cohort

NAMES = [f"client-{k}" for k in range(10)]


def test_the_order_of_names_does_not_matter() -> None:
    assert cohort(1, 3, NAMES, 0.4, 1) == cohort(1, 3, reversed(list(NAMES)), 0.4, 1)  # type: ignore[arg-type]
    assert cohort(1, 3, dict.fromkeys(reversed(NAMES)), 0.4, 1) == cohort(1, 3, set(NAMES), 0.4, 1)


def test_seed_round_and_names_each_matter() -> None:
    draws = {tuple(cohort(seed, number, NAMES, 0.4, 1)) for seed in range(3) for number in range(4)}
    assert len(draws) > 8
    assert cohort(0, 1, NAMES, 0.4, 1) != cohort(0, 1, [f"other-{k}" for k in range(10)], 0.4, 1)


@pytest.mark.parametrize(
    ("share", "at_least", "size"), [(1.0, 1, 10), (0.4, 1, 4), (0.41, 1, 5), (0.01, 1, 1), (0.1, 3, 3), (0.5, 99, 10)]
)
def test_the_size_is_the_share_rounded_up_but_at_least_the_quorum_and_at_most_all(
    share: float, at_least: int, size: int
) -> None:
    chosen = cohort(0, 1, NAMES, share, at_least)
    assert len(chosen) == len(set(chosen)) == size
    assert chosen == sorted(chosen)
    assert set(chosen) <= set(NAMES)


def test_without_clients_the_cohort_is_empty() -> None:
    assert cohort(0, 1, [], 0.5, 2) == []


def test_clients_are_drawn_about_equally_often() -> None:
    drawn = Counter(name for number in range(2000) for name in cohort(0, number, NAMES, 0.3, 1))
    assert all(abs(drawn[name] - 600) < 5 * (2000 * 0.3 * 0.7) ** 0.5 for name in NAMES), "within 5 standard deviations"
