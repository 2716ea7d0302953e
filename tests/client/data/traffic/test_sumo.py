"""The simulator, where it is installed."""

import csv
import sys
from pathlib import Path

import pytest

from client.data.traffic.sumo import VARIABLES, record_sumo
from common.errors import ConfigError, DataError


def test_without_sumo_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sumo", None)
    with pytest.raises(ConfigError, match=r"fedloom\[sumo\]"):
        record_sumo(tmp_path / "a.csv")


def test_a_short_recording(tmp_path: Path) -> None:
    pytest.importorskip("libsumo", reason="needs SUMO: pip install 'fedloom[sumo]'")
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
    for edges, seconds in ((0, 4), (1_000, 4), (5, 0)):
        with pytest.raises(DataError, match="record"):
            record_sumo(tmp_path / "d.csv", edges=edges, seconds=seconds)
