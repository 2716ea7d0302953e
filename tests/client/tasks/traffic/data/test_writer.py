"""What is written is read back."""

from pathlib import Path

import numpy as np
import pytest

from client.tasks.traffic.data.reader import read_series
from client.tasks.traffic.data.series import Sensors, Series, write_series
from common.tasks.traffic.vocabulary import SensorVariables, demo_variables
from tests.support.files import Writer


def same(first: Series, second: Series) -> bool:
    return (
        (first.name, first.start) == (second.name, second.start)
        and np.array_equal(first.values, second.values)
        and np.array_equal(first.observed, second.observed)
    )


@pytest.mark.parametrize("step", [15, 60])
def test_filled_gaps_are_filled_again(text: Writer, tmp_path: Path, step: int) -> None:
    """Two variables, a clock change, single gaps, one of three days and one at the end."""
    rng = np.random.default_rng(3)
    times = np.datetime64("2024-03-01T00:00", "m") + 15 * np.arange(4 * 24 * 21)
    gone = np.isin(np.arange(len(times)), rng.integers(len(times), size=40)) | (np.arange(len(times)) // 96 == 9)
    gone |= np.isin(np.arange(len(times)) // 96, (10, 11))
    cells = ["" if k % 50 == 7 or k > len(times) - 9 else repr(float(rng.normal())) for k in range(len(times))]
    rows = [f'{t},"a, ""b""",{k / 7},{c}' for k, (t, c) in enumerate(zip(times.astype(str), cells, strict=True))]
    kept = [row for row, away in zip(rows, gone, strict=True) if not away]
    measures = SensorVariables(variables=("volume", "speed"), step_seconds=60 * step)
    first = read_series(text("timestamp,site,volume,speed", *kept), measures)
    assert not first.units[0].observed.all(axis=0).any()

    write_series(tmp_path / "b.csv", Sensors(first.units, measures))
    again = read_series(tmp_path / "b.csv", measures)
    assert all(map(same, first.units, again.units))
    assert len(again.units) == 1


def test_one_reading_and_no_series(tmp_path: Path) -> None:
    one = Series("a", np.datetime64("2024-03-01T05:00", "m"), np.array([[0.1]]), np.array([[True]]))
    write_series(tmp_path / "a.csv", Sensors((one,), demo_variables()))
    assert same(read_series(tmp_path / "a.csv", demo_variables()).units[0], one)
