"""A forecast as table, JSON and figure."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from client.tasks.traffic.data.series import Series
from client.tasks.traffic.inference import Forecast
from client.tasks.traffic.sensor import prepare
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.vocabulary import SensorVariables
from deploy.tasks.traffic.forecast import ForecastView, draw

START = np.datetime64("2024-01-01T00:00", "m")


def view(fault: str = "", variables: tuple[str, ...] = ("volume",)) -> ForecastView:
    """Return a forecast of two hours after three weeks: 90, and 150, which exceeds the bound of 120."""
    values = np.tile(np.resize(np.arange(24.0), 21 * 24)[:, None], (1, len(variables)))
    series = Series("a", START, values, np.ones(values.shape, bool))
    sensor = prepare(series, SensorVariables(variables=variables), TrafficOptions(), residual=True)

    def column(*numbers: float) -> np.ndarray:
        return np.tile(np.array(numbers, float)[:, None], (1, len(variables)))

    times = np.array(["2024-01-22T00:00", "2024-01-22T01:00"], "datetime64[m]")
    interval = column(75, np.nan), column(105, np.nan)
    tables = column(90, 150), column(90, 120), column(-10, 20), column(1_100, 120), column(80, 100), *interval
    return ForecastView("r1", variables, TrafficOptions(), Forecast(sensor, fault, times, *tables))


def test_the_table_marks_corrected_values() -> None:
    lines = view().as_lines()
    assert lines[:5] == [
        "a by run r1",
        "",
        "volume                forecast  80 % interval  corrected      property",
        "Mon 2024-01-22 00:00        90      75 to 105         90  -10 to 1,100",
        "Mon 2024-01-22 01:00       150                       120   20 to   120  *",
    ]
    assert lines[-2].startswith("property: satisfied on ")
    assert lines[-1] == "* 1 of 2 forecasts violate the property"


def test_a_fault_is_reported_above_the_profile() -> None:
    lines = view("its last 9 readings are all 0: the sensor seems dead or stuck").as_lines()
    assert lines[1].endswith("dead or stuck; the weekly profile replaces the forecast")
    assert lines[3].split() == ["volume", "profile", "80", "%", "interval", "corrected", "property"]


def test_without_past_errors_a_line_says_why_there_is_no_interval(tmp_path: Path) -> None:
    forecast = view()
    assert forecast.as_lines()[-3].startswith("80 % interval: by the sensor's own past errors")
    for table in (forecast.forecast.low80, forecast.forecast.high80):
        table[:] = np.nan
    assert forecast.as_lines()[-3] == "80 % interval: none; it needs 20 past errors in held-out readings"
    draw(forecast, tmp_path / "a.svg")
    assert forecast.as_json()["rows"][0]["low80"] is None


def test_each_variable_has_a_table() -> None:
    lines = view(variables=("cars", "trucks")).as_lines()
    assert [line.split()[0] for line in lines if "forecast " in line] == ["cars", "trucks"]


def test_json_has_a_row_for_each_step_and_variable() -> None:
    forecast = view(variables=("cars", "trucks"))
    forecast.forecast.high[0, 0] = math.inf
    parsed = json.loads(json.dumps(forecast.as_json(), allow_nan=False))
    assert (parsed["site"], parsed["run"], parsed["fault"], len(parsed["rows"])) == ("a", "r1", "", 4)
    assert parsed["rows"][0]["high"] is None
    assert (parsed["rows"][0]["low80"], parsed["rows"][0]["high80"]) == (75, 105)
    assert parsed["rows"][3] == {
        "time": "2024-01-22T01:00",
        "variable": "trucks",
        "forecast": 150,
        "corrected": 120,
        "low": 20,
        "high": 120,
        "profile": 100,
        "low80": None,
        "high80": None,
        "marked": True,
    }


@pytest.mark.parametrize(
    ("suffix", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")], ids=["svg", "png", "pdf"]
)
def test_the_figure_has_the_format_of_its_suffix(tmp_path: Path, suffix: str, begins: bytes) -> None:
    path = tmp_path / "new" / f"a.{suffix}"
    draw(view("" if suffix == "svg" else "dead", ("cars", "trucks")), path)
    assert path.read_bytes().startswith(begins)


def test_the_figure_has_no_external_resources(tmp_path: Path) -> None:
    draw(view(), tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text("utf-8")
    assert "<script" not in text
    assert 'xlink:href="http' not in text
