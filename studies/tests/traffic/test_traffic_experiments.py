"""Rows of the traffic study are valid configurations; origins, baselines and cold-start sensors by hand."""

from pathlib import Path

import numpy as np
import pytest

from client.tasks.traffic.data.series import Sensors
from client.tasks.traffic.sensor import prepare
from common.config.parse import parse
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.task import TASK
from studies.harness.bench import Bench
from studies.harness.results import Results
from studies.harness.store import Store
from studies.traffic.baselines import last_reading
from studies.traffic.broken_histories import BREAKS
from studies.traffic.cold_start import cold_start
from studies.traffic.data import READERS, cut_end
from studies.traffic.experiments import (
    COLD_START_DAYS,
    EXPERIMENTS,
    FAULTS,
    KINDS,
    NETWORKS,
    PAPER,
    RIDGE,
    ROLLING,
    STREETS,
)
from studies.traffic.paper_figures import figures_of
from studies.traffic.sets import SETTINGS, Setting
from tests.support.sensors import HISTORY, HORIZON, MEASURES, sensor

ONE_UPLOAD = ("fedstl-plain", "fedstl-logic", "fedstl-loss", "fedstl-rounds", "default-single")
KEYS = [one.key for one in EXPERIMENTS]


@pytest.mark.parametrize("setting", SETTINGS, ids=[setting.key for setting in SETTINGS])
def test_every_row_is_a_configuration_with_equal_uploads_or_rounds(setting: Setting) -> None:
    for origin in range(setting.origins):
        for one in setting.experiments(origin):
            config = parse({**one.settings, "seed": 1})
            if config.method == "ridge":
                assert config.federation.cohort == 1
                continue
            has_two_uploads = config.method == "fedstl" and one.key not in ONE_UPLOAD
            uploads = config.rounds * (2 if has_two_uploads else 1)
            assert uploads == (8 if one.key.startswith("transformer") else 40)
            if one.key == "fedstl-rounds":
                assert (
                    one.settings["training.local-steps"],
                    one.settings["algorithm.fedstl.cluster-steps"],
                ) == (12, 4)
            assert config.options_of(TASK).history == setting.task.get("history", 120)


def test_keys_are_unique_and_chosen_rows_exist() -> None:
    assert len(set(KEYS)) == len(KEYS)
    assert {*ROLLING, *STREETS} <= {*KEYS, RIDGE.key}
    paper = [one.key for one in PAPER]
    for network, rows in NETWORKS.items():
        assert [row.key.removeprefix(f"{network}-") for row in rows] == [key for key in paper if _in_table_2(key)]
        assert all(row.settings["tasks.traffic.network"] == network for row in rows)


def _in_table_2(key: str) -> bool:
    return key in ("local", "fedavg", "fedprox", "fedrep", "ditto", "ifca", "fedstl")


def test_every_set_has_a_reader_and_every_fault_a_break() -> None:
    assert READERS.keys() == {setting.key for setting in SETTINGS}
    assert BREAKS.keys() == FAULTS.keys()


def test_an_origin_is_an_earlier_end_and_the_days_before_it() -> None:
    whole = Sensors((sensor(0, 30), sensor(1, 28)), MEASURES)
    now, before = cut_end(whole, 0, 20), cut_end(whole, 5, 20)
    assert [len(series.values) for series in now.units] == [20 * 24, 18 * 24]
    assert [str(series.start) for series in now.units] == ["2024-01-11T00:00"] * 2
    assert [str(series.start) for series in before.units] == ["2024-01-06T00:00"] * 2
    np.testing.assert_array_equal(before.units[0].values, whole.units[0].values[5 * 24 : 25 * 24])
    untouched = cut_end(whole, 0, 0)
    assert all(np.array_equal(a.values, b.values) for a, b in zip(untouched.units, whole.units, strict=True))


def test_repeating_the_last_reading() -> None:
    options = TrafficOptions(history=HISTORY, horizon=HORIZON)
    one = prepare(sensor(0, 20), MEASURES, options, residual=True)
    by_hand = [(one.values[t + p, 0] - one.values[t - 1, 0]) ** 2 for t in one.test for p in range(HORIZON)]
    assert last_reading([one], options) == pytest.approx(np.mean(by_hand))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("days", COLD_START_DAYS)
def test_cold_start_sensors_gain_from_similar_members(kind: str, days: int, tmp_path: Path) -> None:
    def read() -> Sensors:
        return Sensors(tuple(sensor(8 * k, 30) for k in range(8)), MEASURES)  # similar but for level and noise

    found = cold_start(Bench("toy", read, Store(tmp_path, Results())), kind, days).metrics
    assert (found["days"], found["count"]) == (days, 8)
    if kind == "calibrated":
        assert 0.75 < found["own"] < found["pooled"]
    else:
        assert found["own"] < 0.5
        assert found["pooled"] > found["own"] + 0.4


def test_the_papers_figures_of_a_row() -> None:
    assert figures_of("fedavg") == ".154 / 80.5"
    assert figures_of("lstm-fedstl") == ".119 / 83.3, cluster .111 / 83.4, teacher .099"
    assert figures_of("transformer-local") == figures_of("default-fedavg") == figures_of("fedstl-one") == ""
