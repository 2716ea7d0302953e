"""A forecast as table, JSON and figure."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from client.tasks.traffic.data.series import Series
from client.tasks.traffic.inference import Forecast
from client.tasks.traffic.prepare import prepare
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import SensorVariables
from deploy.tasks.traffic.forecast import ForecastView, draw

START = np.datetime64("2024-01-01T00:00", "m")


def outlook(fault: str = "", variables: tuple[str, ...] = ("volume",)) -> ForecastView:
    """Two hours after three weeks: 90, and 150 where no more than 120 are allowed."""
    values = np.tile(np.resize(np.arange(24.0), 21 * 24)[:, None], (1, len(variables)))
    series = Series("a", START, values, np.ones(values.shape, bool))
    sensor = prepare(series, SensorVariables(variables=variables), TrafficOptions(), residual=True)

    def column(*numbers: float) -> np.ndarray:
        return np.tile(np.array(numbers, float)[:, None], (1, len(variables)))

    times = np.array(["2024-01-22T00:00", "2024-01-22T01:00"], "datetime64[m]")
    tables = column(90, 150), column(90, 120), column(-10, 20), column(1_100, 120), column(80, 100)
    return ForecastView("r1", variables, TrafficOptions(), Forecast(sensor, fault, times, *tables))


def test_the_table_stars_what_was_corrected() -> None:
    lines = outlook().as_lines()
    assert lines[:5] == [
        "a by run r1",
        "",
        "volume                forecast  corrected  low   high",
        "Mon 2024-01-22 00:00        90         90  -10  1,100",
        "Mon 2024-01-22 01:00       150        120   20    120  *",
    ]
    assert lines[-2].startswith("property: satisfied on ")
    assert lines[-1] == "* 1 of 2 forecasts violate the property"


def test_a_fault_is_told_above_what_stands_in_for_the_forecast() -> None:
    lines = outlook("its last 9 readings are all 0: the sensor seems dead or stuck").as_lines()
    assert lines[1].endswith("dead or stuck; the weekly profile replaces the forecast")
    assert lines[3].split() == ["volume", "profile", "corrected", "low", "high"]


def test_each_variable_has_a_table() -> None:
    lines = outlook(variables=("cars", "trucks")).as_lines()
    assert [line.split()[0] for line in lines if "forecast " in line] == ["cars", "trucks"]


def test_a_row_a_step_and_variable_for_programs() -> None:
    one = outlook(variables=("cars", "trucks"))
    one.forecast.high[0, 0] = math.inf
    found = json.loads(json.dumps(one.as_json(), allow_nan=False))
    assert (found["site"], found["run"], found["fault"], len(found["rows"])) == ("a", "r1", "", 4)
    assert found["rows"][0]["high"] is None
    assert found["rows"][3] == {
        "time": "2024-01-22T01:00",
        "variable": "trucks",
        "forecast": 150,
        "corrected": 120,
        "low": 20,
        "high": 120,
        "profile": 100,
        "marked": True,
    }


@pytest.mark.parametrize(
    ("suffix", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")], ids=["svg", "png", "pdf"]
)
def test_the_figure_is_of_the_kind_its_name_says(tmp_path: Path, suffix: str, begins: bytes) -> None:
    path = tmp_path / "new" / f"a.{suffix}"
    draw(outlook("" if suffix == "svg" else "dead", ("cars", "trucks")), path)
    assert path.read_bytes().startswith(begins)


def test_the_figure_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    draw(outlook(), tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text("utf-8")
    assert "<script" not in text
    assert 'xlink:href="http' not in text
