"""Rows of the sessions study are valid configurations; rounds and baselines by hand."""

import numpy as np
import pytest

from benchmarks.harness.row import Row, RowKey, Trial
from benchmarks.sessions.baselines import baselines_of
from benchmarks.sessions.data import READERS
from benchmarks.sessions.experiments import BASELINES, EXPERIMENTS, _row
from benchmarks.sessions.page import rounds_to
from benchmarks.sessions.sets import SETTINGS, SMALL_SETTINGS, Setting
from client.data.read import read_all
from client.tasks.sessions.data.split import split_visitor
from common.config.parse import parse
from common.tasks.sessions.options import SessionsOptions


@pytest.mark.parametrize("setting", SETTINGS, ids=[setting.key for setting in SETTINGS])
def test_every_row_is_a_configuration_at_every_point(setting: Setting) -> None:
    rows = {one.key: one for one in setting.experiments()}
    for one in rows.values():
        for point in one.grid:
            config = parse({**one.settings, **point, "seed": 1})
            assert (config.rounds, config.federation.cohort) == (setting.rounds, setting.cohort)
        assert one.tuned_as in ("", *rows)
        assert not one.tuned_as or one.grid == rows[one.tuned_as].grid
    assert rows.keys() <= {one.key for one in EXPERIMENTS}


def test_a_row_that_tests_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="FedProx with one local step is FedAvg"):
        _row("fedprox", "FedProx", "fedprox", ({},))
    assert _row("fedprox", "FedProx", "fedprox", ({},), {"local-steps": 5}).key == "fedprox"


def test_every_set_has_a_reader() -> None:
    assert READERS.keys() == {setting.key for setting in (*SETTINGS, *SMALL_SETTINGS)}


@pytest.mark.parametrize("setting", SMALL_SETTINGS, ids=[setting.key for setting in SMALL_SETTINGS])
def test_small_sets_compare_summed_rules_at_one_point(setting: Setting) -> None:
    off, on = setting.summed()
    assert off.grid == on.grid
    assert len(on.grid) == 1
    assert on.settings == {**off.settings, "tasks.sessions.count-offset": True}
    larger = {one.key: one for one in SETTINGS}[setting.key.removesuffix("-1000")]
    assert (setting.rounds, setting.cohort, setting.cooldown) == (larger.rounds, larger.cohort, larger.cooldown)


def test_every_baseline_scores_all_items() -> None:
    data = read_all("sessions", "demo:0-4")
    splits = [split_visitor(visitor, SessionsOptions(), 0) for visitor in data.units]
    found = baselines_of(splits, len(data.vocabulary.items))
    assert found.keys() == BASELINES.keys()
    for score in found.values():
        assert score(np.array([0, 1]), 0).shape == (len(data.vocabulary.items),)


def test_rounds_to_a_share_of_the_final_hit_rate() -> None:
    curve = {10: {"hr20": 0.5}, 20: {"hr20": 0.96}, 30: {"hr20": 1.0}}
    row = Row(RowKey("", "", ""), trials={0: Trial({"hr20": 1.0}, curve), 1: Trial({"hr20": 0.5}, curve)})
    assert rounds_to(row, 0.95) == 15
    assert rounds_to(Row(RowKey("", "", "")), 0.95) == 0
