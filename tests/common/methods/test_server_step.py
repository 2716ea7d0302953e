"""The server's step size over a run."""

import pytest

from common.methods.fedavg import FedAvg
from common.methods.fedga import FedGA


def test_a_constant_step_unless_asked() -> None:
    assert [FedGA(server_lr=0.02).eta(t, 4) for t in (1, 4)] == [0.02, 0.02]


def test_the_last_half_cools_in_equal_steps_to_a_last_one_that_still_moves() -> None:
    options = FedAvg(server_lr=1.0, cooldown=0.5)
    assert [options.eta(t, 8) for t in range(1, 9)] == [1, 1, 1, 1, 1, 0.75, 0.5, 0.25]


def test_a_cooldown_shorter_than_a_round_changes_nothing() -> None:
    assert FedAvg(cooldown=0.1).eta(3, 3) == pytest.approx(1.0)
