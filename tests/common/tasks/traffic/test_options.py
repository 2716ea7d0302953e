"""What every sensor of a federation measures, and what cannot be."""

import pytest
from pydantic import ValidationError

from common.errors import ConfigError, DataError
from common.tasks.traffic.options import TrafficOptions, compared
from common.tasks.traffic.vocabulary import SensorVariables, duration
from tests.support.sensors import road_config

SIX = SensorVariables(variables=("vehicles", "occupancy"), step_seconds=900)


def test_measures_travel_as_json() -> None:
    assert SensorVariables.from_json(SIX.to_json()) == SIX
    assert SensorVariables(variables=("volume",)).step_seconds == 3600


@pytest.mark.parametrize("variables", [[], [""], ["volume", ""], ["volume", "volume"]])
def test_variables_are_named_and_each_once(variables: list[str]) -> None:
    with pytest.raises(ValidationError, match="name at least one variable, and each once"):
        SensorVariables(variables=tuple(variables))


@pytest.mark.parametrize(
    ("step", "told"),
    [(0, "0 minutes"), (-60, "-1 minutes"), (7, "7 seconds"), (3000, "50 minutes"), (2 * 86400, "2,880 minutes")],
)
def test_a_step_divides_a_day(step: int, told: str) -> None:
    with pytest.raises(ValidationError, match=f"a step of {told} does not divide a day"):
        SensorVariables(variables=("volume",), step_seconds=step)


@pytest.mark.parametrize(
    ("seconds", "told"), [(1, "1 second"), (60, "1 minute"), (90, "90 seconds"), (3600, "60 minutes")]
)
def test_durations_in_words(seconds: int, told: str) -> None:
    assert duration(seconds) == told


@pytest.mark.parametrize(
    ("pair", "places"), [("", (0, 1)), ("occupancy,vehicles", (1, 0)), (" vehicles , occupancy", (0, 1))]
)
def test_which_variables_are_compared(pair: str, places: tuple[int, int]) -> None:
    assert compared(TrafficOptions(property="difference", pair=pair), SIX) == places


@pytest.mark.parametrize("pair", ["vehicles", "vehicles,vehicles", "vehicles,speed", "a,b", "vehicles,occupancy,speed"])
def test_a_pair_names_two_of_the_variables(pair: str) -> None:
    with pytest.raises(ConfigError, match="name two of vehicles, occupancy"):
        compared(TrafficOptions(property="difference", pair=pair), SIX)
    with pytest.raises(ConfigError, match="name two of volume"):
        compared(TrafficOptions(property="difference"), SensorVariables(variables=("volume",)))


@pytest.mark.parametrize("text", ["", "[]", '{"variables": "volume"}', '{"variables": ["v"], "steps": 60}'])
def test_what_is_no_catalogue_is_refused_as_one_of_variables(text: str) -> None:
    with pytest.raises(DataError, match="not a vocabulary of variables"):
        SensorVariables.from_json(text)


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
    assert road_config(tasks__traffic__horizon=9).task_options.horizon == 9
