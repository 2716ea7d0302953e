"""Recommended rules as automations: plain data, off at first, and the same rules when read again."""

import shutil
from pathlib import Path

import pytest
import yaml

from client.tasks.rules.data.home_assistant.registry import CHANGES, state_name, state_value, table
from client.tasks.rules.data.home_assistant.writer import ProposedRule, write_automations
from client.tasks.rules.data.homes import describe
from client.tasks.rules.data.reader import read_homes
from common.tasks.rules.vocabulary import relation_parts

HERE = Path(__file__).parent
RULE = ProposedRule("binary_sensor.door", "Contact sensor", "opens", "turn on", "light.hall", "when …", 0.5)


def proposed(folder: Path) -> list[ProposedRule]:
    """Return the rules of the first home of a folder as if they were recommended."""
    homes = read_homes(folder)
    home, found = homes.units[0], []
    for u, v, r in home.rules.tolist():
        trigger, device = home.devices[u], home.devices[v]
        state, action = relation_parts(homes.vocabulary.relations[r])
        kind = homes.vocabulary.entities[trigger.entity]
        sentence = describe(home, (u, v, r), homes.vocabulary)
        found.append(ProposedRule(trigger.name, kind, state, action, device.name, sentence, 0.5))
    return found


def test_what_is_written_is_read_again_as_the_same_rules(tmp_path: Path) -> None:
    shutil.copytree(HERE / "new", tmp_path / "new")
    rules = [rule for rule in proposed(tmp_path / "new") if rule.trigger != "sensor.outside"]
    (tmp_path / "new" / "automations.yaml").write_text(write_automations(rules, "r1"), "utf-8")
    assert set(proposed(tmp_path / "new")) == set(rules)
    assert len(rules) == 7


def test_an_automation_is_plain_data_and_off() -> None:
    text = write_automations([RULE], "r1")
    assert yaml.safe_load(text) == [
        {
            "id": "fedloom_" + yaml.safe_load(text)[0]["id"][-10:],
            "alias": "when …",
            "description": "fedloom run r1, score 0.50; check before enabling",
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
