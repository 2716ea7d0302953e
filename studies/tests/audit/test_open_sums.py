"""An opened sum shows rare rules if it is exact, and hides them beside noise."""

import numpy as np
import pytest

from studies.audit import open_sums
from studies.audit.cases import Opened

HOMES = [np.array([0, 1]), np.array([2, 3, 4]), np.array([0, 1])]


def test_an_exact_sum_of_pairs_shows_who_is_in_it_and_what_stands_beside_a_rare_triple() -> None:
    counts = open_sums._sum(HOMES, lambda home: 1.0)
    pairs = open_sums._pairs(HOMES, counts)
    assert pairs[0, 1] == pytest.approx(1.0)  # two homes with halves
    assert pairs[2, 4] == pytest.approx(1 / 3)
    assert not pairs[0, 2]
    assert open_sums._precision(pairs[2], HOMES[1], np.array([2])) == 1.0
    assert open_sums._precision(pairs[0], HOMES[1], np.array([2])) == 0.0


def test_noise_hides_what_an_exact_sum_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_sums, "CLIENTS", 40)
    rng = np.random.default_rng(0)
    exact, noised = (open_sums.attack_sum(Opened("", "", epsilon), 0, lambda: rng) for epsilon in (0.0, 1.0))
    assert exact["auc"] > 0.9 > 0.7 > noised["auc"]
    assert exact["precision"] > 0.7 > 0.1 > noised["precision"]


def test_a_noised_sum_is_that_of_bounded_homes() -> None:
    total = open_sums._noised(HOMES * 50, 1e6, np.random.default_rng(0))
    assert total[0] == pytest.approx(100 / 2**0.5, rel=0.05)
    assert total[3] == pytest.approx(50 / 3**0.5, rel=0.05)
