"""Costs of closed forms are of rows that their studies have."""

import pytest

from common.config.parse import parse
from studies.speed.closed_forms import CASES


@pytest.mark.parametrize("task", CASES)
def test_rows_of_a_case_are_in_its_study(task: str) -> None:
    rows = {one.key: one for one in CASES[task].rows()}
    methods = [parse({**rows[key].settings, "seed": 0}) for key in (CASES[task].network, "ridge")]
    assert methods[0].method != methods[1].method == "ridge"
    assert {config.task for config in methods} == {task}
