"""The simulator, where it is installed."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

from client.tasks.traffic.data.reader import read_series
from client.tasks.traffic.data.series import Sensors, write_series
from client.tasks.traffic.data.sumo import MEASURES, VARIABLES, record_sumo
from common.errors import ConfigError, DataError
from common.tasks.traffic.vocabulary import SensorVariables


def test_without_sumo_its_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sumo", None)
    with pytest.raises(ConfigError, match="pip install eclipse-sumo libsumo"):
        record_sumo(tmp_path / "a.csv")


def test_a_short_recording(tmp_path: Path) -> None:
    pytest.importorskip("libsumo", reason="needs SUMO: pip install eclipse-sumo libsumo")
    first, again, other = (tmp_path / f"{name}.csv" for name in "abc")
    for path, seed in ((first, 1), (again, 1), (other, 2)):
        record_sumo(path, edges=5, seconds=4, seed=seed)
    assert first.read_text() == again.read_text()
    assert first.read_text() != other.read_text()

    header, *rows = csv.reader(first.read_text().splitlines())
    assert header == ["timestamp", "site", *VARIABLES]
    assert len(rows) == 5 * 4
    assert len({row[1] for row in rows}) == 5
    assert [row[0] for row in rows[::5]] == [f"2024-01-01T07:00:0{second}" for second in range(4)]
    assert min(float(row[2]) for row in rows) >= 1, "the busiest edges are not empty"
    assert SensorVariables.from_json(first.with_suffix(".json").read_text()) == MEASURES
    for edges, seconds in ((0, 4), (1_000, 4), (5, 0)):
        with pytest.raises(DataError, match="record"):
            record_sumo(tmp_path / "d.csv", edges=edges, seconds=seconds)


def test_a_recording_is_read_second_by_second(tmp_path: Path) -> None:
    """Two edges, five seconds, one of them missing."""
    rows = [
        f"2024-01-01T07:00:0{second},{edge},{','.join(str(second + column) for column in range(6))}"
        for second in (0, 1, 3, 4)
        for edge in ("A0", "B0")
    ]
    path = tmp_path / "sumo.csv"
    path.write_text("\n".join([",".join(("timestamp", "site", *VARIABLES)), *rows]))
    one, two = read_series(path, MEASURES).units
    assert one.times(1).astype(str).tolist() == [f"2024-01-01T07:00:0{second}" for second in range(5)]
    np.testing.assert_array_equal(one.values, np.arange(5)[:, None] + np.arange(6))
    assert one.observed.all(axis=1).tolist() == [True, True, False, True, True]
    np.testing.assert_array_equal(two.values, one.values)
    write_series(tmp_path / "again.csv", Sensors((one,), MEASURES))
    again = read_series(tmp_path / "again.csv", MEASURES).units[0]
    assert again.start == one.start
    np.testing.assert_array_equal(again.values, one.values)
