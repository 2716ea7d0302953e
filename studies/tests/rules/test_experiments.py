"""Rows of the rules study are valid configurations at every point."""

import pytest

from common.config.parse import parse
from studies.harness.experiment import Experiment
from studies.rules.experiments import EXPERIMENTS, TITLES


@pytest.mark.parametrize("one", EXPERIMENTS, ids=[one.key for one in EXPERIMENTS])
def test_every_row_is_a_configuration_at_every_point(one: Experiment) -> None:
    for point in one.grid:
        assert parse({**one.settings, **point, "seed": 1}).task == "rules"
    assert TITLES[one.key] == one.title
