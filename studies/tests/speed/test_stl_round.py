"""Growth of a round's time with clients and formulas, and the formulas of the cells."""

import pytest

from common.tasks.traffic.task import TASK
from studies.speed.stl_round import HORIZON, PUBLISHED, configuration, formula, growth


def test_growth_is_the_mean_of_ratios_of_the_ends() -> None:
    cells = {(10, 5): 1.0, (10, 20): 2.0, (100, 5): 3.0, (100, 20): 12.0}
    runs = [{"clients": n, "formulas": k, "round": seconds} for (n, k), seconds in cells.items()]
    assert growth(runs, "round") == (pytest.approx(3.0), pytest.approx(4.5))


def test_every_cell_is_a_configuration_whose_formulas_fit_the_forecast() -> None:
    for clients, published in PUBLISHED.items():
        for formulas in published:
            options = configuration(clients, formulas, 3).options_of(TASK)
            assert (options.horizon, options.formula) == (HORIZON, formula(formulas))
            assert options.formula.count("G[") == formulas
