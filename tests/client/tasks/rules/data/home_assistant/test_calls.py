"""Entities that a call acts on: templates that choose them, groups, and calls that never come."""

from pathlib import Path

import pytest

from tests.support.home_assistant import BOTH, FAN, MOTION, OFF, ON, QUIET, automation, home, pairs

LAMPS = "{map: {came: light.a, went: light.b}, lamp: \"{{ map[trigger.id] }}\", all: \"{{ ['light.a', 'light.b'] }}\"}"
EACH = {"motion → turn on light.a", "quiet → turn on light.b"}
EVERY = {f"{event} → turn on light.{lamp}" for event in ("motion", "quiet") for lamp in ("a", "b")}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("{{ lamp }}", EACH),
        ("{{ map.get(trigger.id) }}", EACH),
        ("{{ {'came': 'light.a', 'went': 'light.b'}[trigger.id] }}", EACH),
        ("{{ iif(trigger.id == 'came', 'light.a', 'light.b') }}", EACH),
        ("{{ (trigger.to_state.state == 'on') | iif('light.a', 'light.b') }}", EACH),
        ("{{ 'light.' ~ ('a' if trigger.idx == '0' else 'b') }}", EACH),
        ("light.{% if trigger.id == 'x' %}x{% elif trigger.id == 'came' %}a{% else %}b{% endif %}", EACH),
        ("{%- if trigger.id == 'went' -%} light.b {%- else -%} light.a {%- endif -%}", EACH),
        ("{{ ['light.a', 'light.b'] }}", EVERY),
        ("{{ all }}", EVERY),
        ("{{ 'light.a, light.b' }}", EVERY),
        ("{% if trigger.id == 'x' %}light.x{% elif now() %}light.y{% endif %}", set()),
        ("{% if true %}{% if true %}light.x{% else %}light.y{% endif %}{% else %}light.z{% endif %}", set()),
        ("{{ map['elsewhere'] }}", set()),
        ("{{ round['a'] }}", set()),
    ],
)
def test_a_template_chooses_the_entities_that_it_can_become(target: str, expected: set[str], tmp_path: Path) -> None:
    call = f'{{action: light.turn_on, target: {{entity_id: "{target}"}}}}'
    more = f"variables: {LAMPS[:-1]}, round: {{a: \"{{{{ round['a'] }}}}\"}}}}"
    homes = home(tmp_path, automation(f"[{FAN}, {call}]", more=more))
    assert pairs(homes) == expected | {"motion → turn on fan.hall", "quiet → turn on fan.hall"}
    assert ["template" in note for note in homes.notes[1:]] == [True] * (not expected)


GROUPS = "group: {all: {entities: [group.lights, fan.hall, group.all]}, lights: 'light.a, light.b', none: {name: x}}\n"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("light.turn_on, target: {entity_id: group.all}", {"turn on light.a", "turn on light.b"}),
        ("homeassistant.turn_off, entity_id: [group.lights, cover.x]", {"turn off light.a", "turn off light.b"}),
        (
            "scene.apply, data: {entities: {group.all: 'off'}}",
            {f"turn off {e}" for e in ("light.a", "light.b", "fan.hall")},
        ),
        ("homeassistant.turn_off, entity_id: group.elsewhere", {"turn off group.elsewhere"}),
        ("homeassistant.turn_off, entity_id: group.none", set()),
        ("light.turn_off, entity_id: all", set()),
    ],
)
def test_a_call_on_a_group_is_one_on_its_members(call: str, expected: set[str], tmp_path: Path) -> None:
    files = {"configuration.yaml": f"automation: !include automations.yaml\n{GROUPS}"}
    text = automation(f"[{{action: {call}}}]", f"[{MOTION}]") + automation(f"[{ON}]", f"[{QUIET}]")
    homes = home(tmp_path, text, files)
    assert pairs(homes) == {f"motion → {action}" for action in expected} | {"quiet → turn on light.hall"}
    assert homes.notes[0].startswith("read 2 of 2" if expected else "read 1 of 2 automations; 1 not: 1 ")


def test_an_id_that_another_automation_has_is_skipped_and_named(tmp_path: Path) -> None:
    second = automation(f"[{FAN}]", f"[{MOTION}]", "id: '7'")
    homes = home(
        tmp_path, automation(f"[{ON}]", f"[{MOTION}]", "id: 7") + second + automation(f"[{OFF}]", f"[{QUIET}]")
    )
    assert pairs(homes) == BOTH
    said = "1 not: 1 automation with the id of an earlier one (automations.yaml, line 5, 'A')"
    assert homes.notes == (f"read 2 of 3 automations; {said}",)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("climate.set_hvac_mode, data: {hvac_mode: \"{{ 'heat' if moves else 'off' }}\"}", ("heat with", "turn off")),
        ("cover.set_cover_position, data: {position: '{{ 0 if moves else 100 }}'}", ("close", "open")),
        ("media_player.volume_mute, data: {is_volume_muted: \"{{ trigger.id == 'came' }}\"}", ("mute", "unmute")),
        ("script.switch, data: {to: \"{{ trigger.to_state.state == 'on' }}\"}", ("turn on", "turn off")),
    ],
)
def test_data_that_follow_the_event_are_two_rules(call: str, expected: tuple[str, str], tmp_path: Path) -> None:
    script = "switch: {sequence: {action: \"light.turn_{{ 'on' if to else 'off' }}\", target: {entity_id: light.a}}}"
    device = f"{call.partition('.')[0]}.a"
    text = automation(f"[{{action: {call}, target: {{entity_id: {device}}}}}]")
    found = pairs(home(tmp_path, text, {"scripts.yaml": script}))
    device = device.replace("script", "light")
    assert found == {f"motion → {expected[0]} {device}", f"quiet → {expected[1]} {device}"}
