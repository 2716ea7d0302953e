"""Recommended rules as automations: plain data, off at first, and the same rules when read again."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import voluptuous as vol
import yaml

from client.tasks.rules.data.home_assistant.registry import CHANGES, state_name, state_value, table
from client.tasks.rules.data.home_assistant.writer import ProposedRule, write_automations
from client.tasks.rules.data.homes import describe
from client.tasks.rules.data.reader import read_homes
from common.tasks.rules.vocabulary import relation_parts

HERE = Path(__file__).parent
RULE = ProposedRule("binary_sensor.door", "Contact sensor", "opens", "turn on", "light.hall", "when …", "likely; why")


def proposed(folder: Path) -> list[ProposedRule]:
    """Return the rules of the first home of a folder as if they were recommended."""
    homes = read_homes(folder)
    home, found = homes.units[0], []
    for u, v, r in home.rules.tolist():
        trigger, device = home.devices[u], home.devices[v]
        state, action = relation_parts(homes.vocabulary.relations[r])
        kind = homes.vocabulary.entities[trigger.entity]
        sentence = describe(home, (u, v, r), homes.vocabulary)
        found.append(ProposedRule(trigger.name, kind, state, action, device.name, sentence, "likely; why"))
    return found


def test_what_is_written_is_read_again_as_the_same_rules(tmp_path: Path) -> None:
    shutil.copytree(HERE / "new", tmp_path / "new")
    rules = [rule for rule in proposed(tmp_path / "new") if rule.trigger != "sensor.outside"]
    text = write_automations(rules, "r1")
    switched_on = text.replace("initial_state: false", "initial_state: true")
    (tmp_path / "new" / "automations.yaml").write_text(switched_on, "utf-8")
    assert set(proposed(tmp_path / "new")) == set(rules)
    assert len(rules) == 7


def test_an_automation_is_plain_data_and_off() -> None:
    text = write_automations([RULE], "r1")
    assert yaml.safe_load(text) == [
        {
            "id": "fedloom_" + yaml.safe_load(text)[0]["id"][-10:],
            "alias": "when …",
            "description": "fedloom run r1: likely; why; check before enabling",
            "triggers": [{"trigger": "state", "entity_id": "binary_sensor.door", "to": "on"}],
            "conditions": [],
            "actions": [{"action": "light.turn_on", "target": {"entity_id": "light.hall"}}],
            "mode": "single",
            "initial_state": False,
        }
    ]
    assert "to: 'on'" in text, "YAML 1.1 would read a bare on as a boolean"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"trigger": "Front door"}, "no entity id"),
        ({"device": "light.hall\n- evil"}, "no entity id"),
        ({"state": "rises above a value"}, "'rises above a value' has no value in Home Assistant that the model gives"),
        (
            {"action": "set the temperature of"},
            "'set the temperature of' has no value in Home Assistant that the model gives",
        ),
    ],
)
def test_a_rule_that_cannot_be_written_becomes_a_comment(change: dict[str, str], said: str) -> None:
    rule = ProposedRule(**{**vars(RULE), **change, "sentence": "when\n- id: evil\x1b[31m"})
    text = write_automations([rule], "r1")
    assert f"# not written: when - id: evil� ({said})\n" in text
    assert yaml.safe_load(text) == []


def test_an_action_by_its_data_is_written_with_them() -> None:
    [found] = yaml.safe_load(write_automations([ProposedRule(**{**vars(RULE), "action": "dim"})], "r1"))
    assert found["actions"][0]["data"] == {"brightness_step_pct": "-10"}
    change = {"device": "climate.hall", "action": "set away mode on"}
    [found] = yaml.safe_load(write_automations([ProposedRule(**{**vars(RULE), **change})], "r1"))
    call = {
        "action": "climate.set_preset_mode",
        "target": {"entity_id": "climate.hall"},
        "data": {"preset_mode": "away"},
    }
    assert found["actions"] == [call]


def test_hostile_names_stay_text() -> None:
    rule = ProposedRule(**{**vars(RULE), "sentence": "x'\"\n- id: evil\n!!python/name:os.system"})
    [found] = yaml.safe_load(write_automations([rule], "r\n- evil"))
    assert found["alias"] == "x'\" - id: evil !!python/name:os.system"


def test_a_change_of_any_kind_has_no_state() -> None:
    [found] = yaml.safe_load(write_automations([ProposedRule(**{**vars(RULE), "state": CHANGES})], "r1"))
    assert found["triggers"] == [{"trigger": "state", "entity_id": "binary_sensor.door"}]


def test_no_rule_is_an_empty_list() -> None:
    assert yaml.safe_load(write_automations([], "r1")) == []


def test_every_name_of_the_table_stands_for_one_value() -> None:
    found = table()
    for kind, states in found["states"].items():
        for value, name in states.items():
            if kind != "*":
                assert (state_name(kind, value), state_value(kind, name)) == (name, value)
    for services in found["services"].values():
        assert len(set(services.values())) == len(services)
    assert set(found["states"]) - {"*"} <= set(found["types"].values())


ENTITY_ID = vol.Match(r"^[a-z][a-z0-9_]*[a-z0-9]\.[a-z0-9]([a-z0-9_]*[a-z0-9])?$")
ID = {vol.Optional("id"): str}
STATE = {vol.Required("entity_id"): ENTITY_ID}
CONDITION = vol.Any(
    {vol.Required("condition"): "trigger", vol.Required("id"): str},
    {vol.Required("condition"): "state", **STATE, vol.Required("state"): str},
    {vol.Required("condition"): "numeric_state", **STATE, vol.Required("above"): vol.Any(int, float)},
    {vol.Required("condition"): "time", vol.Optional("after"): str, vol.Optional("before"): str},
)
CALL = {vol.Required("action"): ENTITY_ID, vol.Required("target"): STATE, vol.Optional("data"): {str: object}}
CHOICE = {vol.Required("conditions"): [CONDITION], vol.Required("sequence"): [CALL]}
TRIGGER = vol.Any(
    {vol.Required("trigger"): "state", **STATE, vol.Optional("to"): str, **ID},
    {vol.Required("trigger"): "sun", vol.Required("event"): vol.Any("sunrise", "sunset"), **ID},
)
AUTOMATIONS = vol.Schema(
    [
        {
            **dict.fromkeys(map(vol.Required, ("id", "alias", "description")), str),
            vol.Required("triggers"): vol.All([TRIGGER], vol.Length(min=1)),
            vol.Required("conditions"): [CONDITION],
            vol.Required("actions"): vol.All([vol.Any(CALL, {vol.Required("choose"): [CHOICE]})], vol.Length(min=1)),
            vol.Required("mode"): vol.Any("single", "restart", "queued", "parallel"),
            vol.Required("initial_state"): bool,
        }
    ]
)
"""Schemas of Home Assistant's shape, without further keys; `on` that YAML reads as a boolean is refused."""


UNDOING = {"undoing": ("closes", "turn off")}
SUN = {"trigger": "sun.sun", "trigger_type": "Sun", "state": "sets", "undoing": ("rises", "turn off")}


@pytest.mark.parametrize(
    "change",
    [
        *({}, UNDOING, SUN, {"state": CHANGES}, {"sentence": "on: {'\"", "about": "off\n- x: !y"}),
        {"circumstances": "in the dark and while somebody is home"},
        {**UNDOING, "circumstances": "after 22:00 before 06:30 and while nobody is home"},
    ],
)
def test_home_assistant_accepts_what_is_written(change: dict[str, Any]) -> None:
    text = write_automations([ProposedRule(**{**vars(RULE), **change})], "r1")
    [found] = AUTOMATIONS(yaml.safe_load(text))
    assert found["alias"]
    assert not found["initial_state"]
    [first] = found["actions"]
    conditions = [*found["conditions"], *first.get("choose", [{"conditions": []}])[0]["conditions"]]
    assert len(conditions) == 2 * ("circumstances" in change) + ("choose" in first)


@pytest.mark.parametrize("change", [UNDOING, SUN])
def test_two_rules_that_undo_each_other_are_one_automation(change: dict[str, Any]) -> None:
    [found] = yaml.safe_load(write_automations([ProposedRule(**{**vars(RULE), **change})], "r1"))
    assert [trigger["id"] for trigger in found["triggers"]] == ["does", "undoes"]
    [choice] = found["actions"]
    assert [one["conditions"][0]["id"] for one in choice["choose"]] == ["does", "undoes"]
    assert [one["sequence"][0]["action"] for one in choice["choose"]] == ["light.turn_on", "light.turn_off"]
