"""Rows of the markets study are valid configurations under every protocol."""

import pytest

from benchmarks.harness.experiment import Experiment
from benchmarks.markets.experiments import EXPERIMENTS, MARKETS, PROTOCOLS, RATES, SMALL, under
from common.config.parse import parse
from common.tasks.markets.task import TASK


@pytest.mark.parametrize("one", EXPERIMENTS, ids=[one.key for one in EXPERIMENTS])
def test_every_row_is_a_configuration_under_every_protocol(one: Experiment) -> None:
    assert len(one.grid) in (1, len(RATES))
    for protocol in PROTOCOLS:
        adapted = under(protocol, one)
        config = parse({**adapted.settings, **adapted.grid[0], "seed": 1})
        assert (adapted.protocol, config.options_of(TASK).protocol) == (protocol, protocol)


def test_small_markets_are_markets() -> None:
    assert set(SMALL) < set(MARKETS)
