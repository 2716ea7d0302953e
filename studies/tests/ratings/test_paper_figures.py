import numpy as np
import pytest

from client.tasks.ratings.data.raters import arrived
from studies.ratings.paper_figures import TABLE_II, claimed_epsilon, mean_rows, rows_of, true_epsilon


def test_the_true_cost_of_the_papers_accounting() -> None:
    """About 590 for a user of 85 rows; 20.2 for one by the looser conversion."""
    assert true_epsilon(85) == pytest.approx(585, abs=1)
    assert true_epsilon(590) == pytest.approx(3336, abs=1)
    assert claimed_epsilon() == pytest.approx(19.05, abs=0.01)


@pytest.mark.parametrize("rounds", [1, 7, 100])
def test_rows_that_arrive(rounds: int) -> None:
    there = [arrived(1_000_000, t, rounds) for t in range(1, rounds + 1)]
    assert mean_rows(1_000_000, rounds) == pytest.approx(np.mean(there), rel=1e-5)
    assert mean_rows(80, 100) == pytest.approx(80 * 0.7525)


def test_rows_of_clients_that_have_any() -> None:
    assert rows_of(np.array([0, 3, 5, 0])) == (4.0, 5.0)


def test_every_entry_of_the_paper_with_noise_is_worse_than_always_one_half() -> None:
    """What explore-ratings.md §1 says of Table II: .3054 and .3391."""
    worst = {"ml": 0.3054, "ft": 0.3391}
    noised = [(key, entry.gaussian[0]) for key, entries in TABLE_II.items() for entry in entries[1:]]
    assert len(noised) == 8
    assert all(rmse > worst[key] for key, rmse in noised)
