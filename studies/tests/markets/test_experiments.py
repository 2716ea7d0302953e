"""Rows of the markets study are valid configurations under every protocol."""

import pytest

from common.config.parse import parse
from common.methods.pfgnn import PFGNN
from common.tasks.markets.task import TASK
from studies.harness.experiment import Experiment
from studies.markets.experiments import EXPERIMENTS, MARKETS, PROTOCOLS, RATES, SMALL, under
from studies.markets.retail import EFFORT_STEPS, EFFORTS
from studies.markets.weights import (
    COMPARED,
    COMPARED_SUMS,
    OF_SUMS,
    PAIRS,
    PULL,
    SUM_RATES,
    SUM_ROUNDS,
    SUMMARIES,
    SUMMED,
    WEIGHTED,
)

WEIGHT = "algorithm.pfgnn.lambda-w"


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
        if SUMMED in one.key:
            continue
        assert one.grid == like.grid
        changed = {name for name, value in one.settings.items() if like.settings.get(name) != value}
        assert changed <= names
    assert (PFGNN().lambda_w, PFGNN().lambda_s) == (1.0, 0.01)
    assert {key for pair in (*COMPARED, *COMPARED_SUMS) for key in pair} == {
        PULL,
        SUMMARIES,
        *(one.key for one in WEIGHTED),
    }


def test_rows_of_sums_differ_by_their_weights_alone() -> None:
    sums = [parse({**one.settings, "seed": 1}) for one in WEIGHTED if SUMMED in one.key]
    weights = [(one.method_options.lambda_w * PAIRS, one.method_options.lambda_s) for one in sums]
    assert len(set(zip(weights, (one.method_options.plus for one in sums), strict=True))) == len(sums) == 10
    same = {one.method_options.model_copy(update={"lambda_w": 0, "lambda_s": 0, "plus": False}) for one in sums}
    assert len(same) == 1
    assert {(one.rounds, one.method_options.local_steps) for one in sums} == {(SUM_ROUNDS + 1, 1)}


def test_rows_of_sums_take_rate_and_rounds_from_pf_gnn_with_the_same_pull() -> None:
    pulls = {one.key: one for one in OF_SUMS if one.tuned_as == one.key}
    assert len(pulls) == 5
    for one in OF_SUMS:
        assert one.settings[WEIGHT] == pulls[one.tuned_as].settings[WEIGHT]
        assert [next(iter(point.values())) for point in one.grid] == list(SUM_RATES)


def test_rows_with_the_papers_effort_are_rows_of_200_steps() -> None:
    efforts = [parse({**one.settings, **one.grid[0], "seed": 1}) for one in EFFORTS]
    assert {one.method_options.local_steps for one in efforts} == {EFFORT_STEPS}
    found = [one.method_options for one in efforts if one.method == "pfgnn"]
    assert [(one.plus, one.divergence) for one in found] == [(False, 0.0), (True, 0.0)]
