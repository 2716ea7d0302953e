"""Cells of the table on rounds of FedSTL are configurations."""

from common.tasks.traffic.task import TASK
from studies.speed.stl_round import FORMULAS, HORIZON, PUBLISHED, configuration


def test_formulas_of_every_cell_fit_the_forecast() -> None:
    for clients in PUBLISHED:
        found = [configuration(clients, formulas, 3).options_of(TASK) for formulas in FORMULAS]
        assert [(one.formula.count("G["), one.horizon) for one in found] == [(n, HORIZON) for n in FORMULAS]
