"""Server step size over the rounds of a run."""

import pytest

from common.methods.fedavg import FedAvg, FedGA


def test_the_step_is_constant_by_default() -> None:
    assert [FedGA(server_lr=0.02).eta(t, 4) for t in (1, 4)] == [0.02, 0.02]


def test_the_step_decreases_linearly_over_the_cooldown() -> None:
    options = FedAvg(server_lr=1.0, cooldown=0.5)
    assert [options.eta(t, 8) for t in range(1, 9)] == [1, 1, 1, 1, 1, 0.75, 0.5, 0.25]


def test_a_cooldown_shorter_than_a_round_has_no_effect() -> None:
    assert FedAvg(cooldown=0.1).eta(3, 3) == pytest.approx(1.0)
