"""Vocabulary and options of the traffic task."""

import pytest
from pydantic import ValidationError

from common.errors import ConfigError, DataError
from common.tasks.traffic.options import TrafficOptions, compared_variables
from common.tasks.traffic.vocabulary import SensorVariables, duration
from tests.support.sensors import road_config

SIX = SensorVariables(variables=("vehicles", "occupancy"), step_seconds=900)


def test_a_vocabulary_survives_json() -> None:
    assert SensorVariables.from_json(SIX.to_json()) == SIX
    assert SensorVariables(variables=("volume",)).step_seconds == 3600


@pytest.mark.parametrize("variables", [[], [""], ["volume", ""], ["volume", "volume"]])
def test_variables_are_named_and_each_once(variables: list[str]) -> None:
    with pytest.raises(ValidationError, match="empty or listed twice"):
        SensorVariables(variables=tuple(variables))


@pytest.mark.parametrize(
    ("step", "text"),
    [(0, "0 minutes"), (-60, "-1 minutes"), (7, "7 seconds"), (3000, "50 minutes"), (2 * 86400, "2,880 minutes")],
)
def test_a_step_divides_a_day(step: int, text: str) -> None:
    with pytest.raises(ValidationError, match=f"the step of {text} does not divide a day"):
        SensorVariables(variables=("volume",), step_seconds=step)


@pytest.mark.parametrize(
    ("seconds", "text"), [(1, "1 second"), (60, "1 minute"), (90, "90 seconds"), (3600, "60 minutes")]
)
def test_durations_in_words(seconds: int, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("pair", "places"), [("", (0, 1)), ("occupancy,vehicles", (1, 0)), (" vehicles , occupancy", (0, 1))]
)
def test_compared_variables_by_the_option_pair(pair: str, places: tuple[int, int]) -> None:
    assert compared_variables(TrafficOptions(property="difference", pair=pair), SIX) == places


@pytest.mark.parametrize("pair", ["vehicles", "vehicles,vehicles", "vehicles,speed", "a,b", "vehicles,occupancy,speed"])
def test_a_pair_names_two_of_the_variables(pair: str) -> None:
    with pytest.raises(ConfigError, match="set pair to two of vehicles, occupancy"):
        compared_variables(TrafficOptions(property="difference", pair=pair), SIX)
    with pytest.raises(ConfigError, match="set pair to two of volume"):
        compared_variables(TrafficOptions(property="difference"), SensorVariables(variables=("volume",)))


@pytest.mark.parametrize("text", ["", "[]", '{"variables": "volume"}', '{"variables": ["v"], "steps": 60}'])
def test_an_invalid_text_is_refused_as_a_vocabulary_of_variables(text: str) -> None:
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
