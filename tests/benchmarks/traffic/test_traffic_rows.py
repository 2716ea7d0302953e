"""Rows of the traffic tables: what is cut where, which runs they name, and what newcomers gain on sites like each other."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.traffic.experiments import EXPERIMENTS, NETWORKS, ROLLING, STREETS, TABLE_2
from benchmarks.traffic.lines import last_reading
from benchmarks.traffic.newcomers import newcomers
from benchmarks.traffic.sets import SETTINGS, SUMO, Setting, ending
from benchmarks.traffic.study import Row
from benchmarks.traffic.table import other_networks, other_origins
from client.data.traffic.series import Dataset
from client.tasks.traffic_sensor import prepare
from common.config import parse
from common.tasks.traffic import TrafficOptions
from tests.sensors import HISTORY, HORIZON, MEASURES, sensor

KEYS = [one.key for one in EXPERIMENTS]


def test_every_row_is_a_run_that_can_be_started() -> None:
    for setting in SETTINGS:
        for one in (*EXPERIMENTS, *(row for rows in NETWORKS.values() for row in rows)):
            config = parse(one.config(1, setting.uploads, setting.cohort, setting.task))
            assert config.rounds * one.exchanges == setting.uploads
            assert (config.method, config.model) == (one.method, one.model)
            assert config.tasks.traffic.history == (40 if setting is SUMO else 120)


def test_rows_are_named_once_and_those_chosen_are_there() -> None:
    assert len(set(KEYS)) == len(KEYS)
    assert {*ROLLING, *STREETS, *TABLE_2} <= set(KEYS)
    for network, rows in NETWORKS.items():
        assert [row.key for row in rows] == [f"{network}-{key}" for key in KEYS if key in TABLE_2]
        assert all(row.task["network"] == network for row in rows)


def test_an_origin_is_an_earlier_end_and_the_days_before_it() -> None:
    whole = Dataset((sensor(0, 30), sensor(1, 28)), MEASURES)
    now, before = ending(whole, 0, 20), ending(whole, 5, 20)
    assert [len(series.values) for series in now.series] == [20 * 24, 18 * 24]
    assert [str(series.start) for series in now.series] == ["2024-01-11T00:00"] * 2
    assert [str(series.start) for series in before.series] == ["2024-01-06T00:00"] * 2
    np.testing.assert_array_equal(before.series[0].values, whole.series[0].values[5 * 24 : 25 * 24])
    untouched = ending(whole, 0, 0)
    assert all(np.array_equal(a.values, b.values) for a, b in zip(untouched.series, whole.series, strict=True))


def test_repeating_the_last_reading() -> None:
    options = TrafficOptions(history=HISTORY, horizon=HORIZON)
    one = prepare(sensor(0, 20), MEASURES, options, residual=True)
    by_hand = [(one.values[t + p, 0] - one.values[t - 1, 0]) ** 2 for t in one.test for p in range(HORIZON)]
    assert last_reading([one], options) == pytest.approx(np.mean(by_hand))


def test_newcomers_gain_from_members_like_them(tmp_path: Path) -> None:
    def read(folder: Path, cache: Path) -> Dataset:
        return Dataset(tuple(sensor(8 * k, 30) for k in range(8)), MEASURES)  # alike but for level and noise

    rows = newcomers(Setting("toy", "", "", 1.0, 1, read), tmp_path, tmp_path)
    assert [row[:3] for row in rows] == [
        [title, days, "8"] for title in ("two-hour ranges", "hourly, calibrated at 90 %") for days in ("5", "7")
    ]
    for row in rows:
        own, pooled = (int(cell.removesuffix(" %")) for cell in row[3:5])
        assert own < 50
        assert pooled > own + 40


def test_rows_that_were_not_run_leave_no_section() -> None:
    line = Row("ridge", "line", {"0": {"profile_mse": 3.0, "ridge_mse": 1.0, "mse": 2.0}})
    setting = Setting("toy", "", "", 1.0, 1, lambda folder, cache: Dataset((), MEASURES), back=3)
    known = Row("fedavg", "FedAvg", {"0": {"mse": 0.5}})
    assert other_networks({"rnn": []}) == ""
    assert other_origins(setting, [[known], []], [line, line]) == ""
    page = other_origins(setting, [[known], [known, Row("x", "X", {"0": {"mse": 1.0}})]], [line, line])
    assert "| FedAvg | 0.5000 | 0.5000 | 0.5000 |" in page
    assert "| X |  | 1.0000 |  |" in page
    assert "| method | as above | 3 days earlier | mean |" in page
