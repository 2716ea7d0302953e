"""Budgets under cohorts are spread over the rounds that ask a client."""

from pathlib import Path

import pytest

from common.options import Scalar
from tests.support.owners import SHARING, Owners, costs_of, noisy, total_of


@pytest.mark.parametrize("planned", [0, 2])
def test_a_budget_is_spread_over_the_rounds_that_ask_a_client(planned: int, tmp_path: Path) -> None:
    options: dict[str, Scalar] = {"rounds": 12, "federation__cohort": 0.2, "privacy__participations": planned}
    config, clients = noisy(tmp_path, **options), Owners((SHARING,) * 5)
    clients.run(config, tmp_path)
    cost = total_of(config) / (planned or 6)  # 2.4 rounds and two deviations of 1.4
    assert costs_of(tmp_path) == pytest.approx([cost] * len(costs_of(tmp_path)))
    assert all(spent <= total_of(config) * (1 + 1e-9) for spent in clients.spent(config).values())
