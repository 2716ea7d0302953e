"""Rows of the markets study are valid configurations under every protocol."""

import pytest

from common.config.parse import parse
from common.methods.pfgnn import PFGNN
from common.tasks.markets.task import TASK
from studies.harness.experiment import Experiment
from studies.markets.experiments import EXPERIMENTS, MARKETS, PROTOCOLS, RATES, SMALL, under
from studies.markets.weights import COMPARED, COMPARED_SUMS, PULL, SUMMARIES, WEIGHTED


@pytest.mark.parametrize("one", EXPERIMENTS, ids=[one.key for one in EXPERIMENTS])
def test_every_row_is_a_configuration_under_every_protocol(one: Experiment) -> None:
    assert len(one.grid) in (1, len(RATES))
    for protocol in PROTOCOLS:
        adapted = under(protocol, one)
        config = parse({**adapted.settings, **adapted.grid[0], "seed": 1})
        assert (adapted.protocol, config.options_of(TASK).protocol) == (protocol, protocol)


def test_small_markets_are_markets() -> None:
    assert set(SMALL) < set(MARKETS)


def test_rows_of_other_weights_differ_from_theirs_by_the_weights_alone() -> None:
    rows = {one.key: one for one in (*EXPERIMENTS, *WEIGHTED)}
    names = {f"algorithm.pfgnn.lambda-{which}" for which in "ws"}
    for one in WEIGHTED:
        like = rows[SUMMARIES if one.key.startswith(SUMMARIES) else PULL]
        assert (one.seeds, one.protocol) == (like.seeds, like.protocol)
        assert all(point in like.grid for point in one.grid)
        assert one.settings.keys() - like.settings.keys() <= names
    assert (PFGNN().lambda_w, PFGNN().lambda_s) == (1.0, 0.01)
    assert {key for pair in (*COMPARED, *COMPARED_SUMS) for key in pair} == {
        PULL,
        SUMMARIES,
        *(one.key for one in WEIGHTED),
    }
