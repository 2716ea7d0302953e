"""What every sensor of a federation measures, and what cannot be."""

import pytest
from pydantic import ValidationError

from common.errors import ConfigError, DataError
from common.tasks.traffic import Measures
from tests.sensors import road_config

SIX = Measures(variables=("vehicles", "occupancy"), step=15)


def test_measures_travel_as_json() -> None:
    assert Measures.from_json(SIX.to_json()) == SIX
    assert Measures(variables=("volume",)).step == 60


@pytest.mark.parametrize("variables", [[], [""], ["volume", ""], ["volume", "volume"]])
def test_variables_are_named_and_each_once(variables: list[str]) -> None:
    with pytest.raises(ValidationError, match="name at least one variable, and each once"):
        Measures(variables=tuple(variables))


@pytest.mark.parametrize("step", [0, -60, 7, 50, 2880])
def test_a_step_divides_a_day(step: int) -> None:
    with pytest.raises(ValidationError, match=f"a step of {step} minutes does not divide a day"):
        Measures(variables=("volume",), step=step)


@pytest.mark.parametrize("text", ["", "[]", '{"variables": "volume"}', '{"variables": ["v"], "steps": 60}'])
def test_what_is_no_catalogue_is_refused_as_one_of_variables(text: str) -> None:
    with pytest.raises(DataError, match="not a catalogue of variables"):
        Measures.from_json(text)


@pytest.mark.parametrize(
    ("key", "value"),
    [("coverage", 1.0), ("coverage", 0.0), ("horizon", 0), ("history", 1), ("property-weight", -1.0), ("batch", 0)],
)
def test_options_out_of_range_are_refused_by_name(key: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"tasks.traffic.{key}"):
        road_config(**{f"tasks__traffic__{key}": value})


def test_a_history_shorter_than_the_horizon_is_refused() -> None:
    with pytest.raises(ConfigError, match="history 9 is shorter than horizon 24"):
        road_config(tasks__traffic__horizon=24)
    assert road_config(tasks__traffic__horizon=9).tasks.traffic.horizon == 9
