"""Recommended rules as automations of Home Assistant."""

from typing import Any

import pytest
import yaml

from common.errors import ConfigError
from deploy.pages.answers import format_of, to_yaml
from deploy.tasks.ratings.task import TASK as RATINGS
from deploy.tasks.rules.task import TASK
from deploy.tasks.spec import Answers

ROW: dict[str, Any] = {
    "rule": "when Contact sensor door opens, turn on Light hall",
    "score": 0.5,
    "likely": "likely",
    "why": "",
    "trigger_device": "Contact sensor",
    "trigger_device_id": "binary_sensor.door",
    "trigger_state": "opens",
    "action": "turn on",
    "action_device": "Light",
    "action_device_id": "light.hall",
    "undoing_state": "",
    "circumstances": "",
    "undoing_action": "",
}
ANSWERS = Answers("home", "rule", {"rule": ("rule",)}, [ROW])


def test_rows_become_automations() -> None:
    [found] = yaml.safe_load(to_yaml(TASK, [ANSWERS], "r1"))
    assert found["alias"] == ROW["rule"]
    assert found["actions"] == [{"action": "light.turn_on", "target": {"entity_id": "light.hall"}}]
    assert found["initial_state"] is False


def test_yaml_is_of_one_home_and_of_tasks_with_such_a_form() -> None:
    assert format_of("yaml", None, is_json=False) == "yaml"
    with pytest.raises(ConfigError, match="--format yaml writes the answers to one query; remove --all"):
        to_yaml(TASK, [ANSWERS, ANSWERS], "r1")
    with pytest.raises(ConfigError, match="--format yaml does not apply to task ratings; set --format to csv or json"):
        to_yaml(RATINGS, [ANSWERS], "r1")
