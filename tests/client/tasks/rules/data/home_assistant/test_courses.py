"""Pairs that can happen and no others: each construct of an automation with its rules."""

import json
from pathlib import Path

import pytest

from common.errors import DataError
from tests.support.home_assistant import BOTH, FAN, MOTION, OFF, ON, QUIET, automation, home, pairs


def chosen(condition: str, other: str = "[]") -> str:
    return f"[{{choose: [{{conditions: {condition}, sequence: [{ON}]}}], default: {other}}}]"


DOWN = "{condition: state, entity_id: sun.sun, state: below_horizon}"
LATE = "{condition: time, after: '22:00', before: '06:30:00'}"


@pytest.mark.parametrize(
    ("actions", "more", "said"),
    [
        (f"[{ON}]", "conditions: {condition: sun, after: sunset}", ["in the dark"]),
        (f"[{ON}]", "condition: {condition: sun, after: sunrise, before: sunset}", ["by day"]),
        (f"[{DOWN}, {ON}]", "", ["in the dark"]),
        (f"[{{if: [{DOWN}], then: {ON}, else: {FAN}}}]", "", ["", "in the dark"]),
        (
            chosen(f"[{LATE}, {{condition: state, entity_id: person.a, state: home}}]"),
            "",
            ["after 22:00 before 06:30:00"],
        ),
        (chosen("{condition: or, conditions: [{condition: sun, before: sunrise}, " + DOWN + "]}"), "", ["in the dark"]),
        (chosen("{condition: or, conditions: [" + LATE + ", " + DOWN + "]}"), "", [""]),
        (chosen("{condition: not, conditions: [" + DOWN + "]}"), "", [""]),
        (chosen("{condition: numeric_state, entity_id: zone.home, above: 0}"), "", ["while somebody is home"]),
        (chosen("\"{{ is_state('group.family', 'not_home') }}\""), "", ["while nobody is home"]),
        (chosen(DOWN[:-1] + ", enabled: false}"), "", [""]),
        (f"[{{choose: [{{conditions: {DOWN}, sequence: [{ON}]}}]}}, {ON}]", "", [""]),
    ],
)
def test_sun_presence_and_time_are_circumstances_of_a_rule(
    actions: str, more: str, said: list[str], tmp_path: Path
) -> None:
    homes = home(tmp_path, automation(actions, f"[{MOTION}]", more))
    [one] = homes.units
    assert [text.partition(" and ")[0] for text in one.when or [""] * len(one.rules)] == said
    assert not any(text and text in homes.vocabulary.to_json() for text in said), "what leaves is the same"


DECIDED = [
    "[{condition: trigger, id: came}]",
    "{condition: trigger, id: [came, elsewhere]}",
    "\"{{ trigger.id == 'came' }}\"",
    "\"{{ trigger.id in ['came', 'x'] }}\"",
    "\"{{ trigger.to_state.state == 'on' }}\"",
    "\"{{ trigger.to_state.state != 'off' }}\"",
    "\"{{ not (trigger.to_state.state == 'off') }}\"",
    "\"{{ is_state('binary_sensor.hall_motion', 'on') }}\"",
    "\"{{ is_state('binary_sensor.hall_motion', ['on', 'open']) }}\"",
    "\"{{ states('binary_sensor.hall_motion') == 'on' and trigger.platform == 'state' }}\"",
    "\"{{ states.binary_sensor.hall_motion.state == 'on' or trigger.id == 'x' }}\"",
    "{condition: template, value_template: \"{{ trigger.id == 'came' }}\"}",
    "{condition: state, entity_id: binary_sensor.hall_motion, state: 'on'}",
    "{condition: state, entity_id: [binary_sensor.hall_motion], state: ['on', open]}",
    "{condition: and, conditions: [{condition: trigger, id: came}, {condition: template, value_template: '{{ true }}'}]}",
    "{and: [{condition: trigger, id: came}]}",
    "{or: [{condition: trigger, id: x}, {condition: trigger, id: came}]}",
    "{not: [{condition: trigger, id: went}]}",
    "\"{{ 'on' == trigger.to_state.state }}\"",
    "\"{{ is_state(trigger.entity_id, 'on') }}\"",
    "\"{{ trigger.id == 'came' and trigger.from_state is not none }}\"",
    "\"{{ trigger.from_state.state not in ['unavailable', 'unknown'] and trigger.to_state.state == 'on' }}\"",
    "\"{{ trigger.from_state.state != trigger.to_state.state and trigger.id == 'came' }}\"",
    "{condition: device, device_id: d, domain: binary_sensor, type: is_motion, entity_id: binary_sensor.hall_motion}",
    "{condition: not, conditions: {condition: trigger, id: went}}",
    "[{condition: time, after: '08:00', enabled: false}, {condition: trigger, id: came}]",
    "{alias: Came, condition: \"{{ trigger.id == 'came' }}\"}",
    "\"{{ trigger.from_state.state == 'off' and moves }}\"",
    "{condition: binary_sensor.is_on, target: {entity_id: binary_sensor.hall_motion}}",
]


@pytest.mark.parametrize("condition", DECIDED)
def test_a_choice_by_the_trigger_keeps_the_meant_pairs(condition: str, tmp_path: Path) -> None:
    assert pairs(home(tmp_path, automation(f"[{{if: {condition}, then: {ON}, else: [{OFF}]}}]"))) == BOTH
    found = pairs(home(tmp_path, automation(chosen(condition))))
    assert found == {"motion → turn on light.hall"}
    found = pairs(home(tmp_path, automation(f"[{condition if condition[0] != '[' else condition[1:-1]}, {ON}]")))
    assert found == {"motion → turn on light.hall"}
    more = f"conditions: {condition}"
    assert pairs(home(tmp_path, automation(f"[{ON}]", more=more))) == {"motion → turn on light.hall"}


@pytest.mark.parametrize(
    "condition",
    [
        "{condition: state, entity_id: light.kitchen, state: 'on'}",
        "{condition: state, entity_id: !secret kitchen, state: 'on'}",
        "{condition: state, entity_id: [light.kitchen, binary_sensor.hall_motion], state: 'on'}",
        "{condition: state, entity_id: [light.kitchen, binary_sensor.hall_motion], state: 'off', match: any}",
        "\"{{ states('input_number.x') | int > 5 }}\"",
        "{condition: sun, after: sunset}",
        "\"{{ is_state('light.kitchen', 'on') }}\"",
        '"{{ now().hour > 8 }}"',
        "!secret condition",
        "[]",
    ],
)
def test_a_choice_by_anything_else_can_go_either_way(condition: str, tmp_path: Path) -> None:
    text = automation(f"[{{if: {condition}, then: {ON}, else: {OFF}}}]", f"[{MOTION}]")
    expected = {"motion → turn on light.hall", "motion → turn off light.hall"}
    assert pairs(home(tmp_path, text)) == (expected if condition != "[]" else {"motion → turn on light.hall"})


@pytest.mark.parametrize(
    "condition",
    [
        "(trigger.id == 'came') | iif(true, false)",
        "trigger.id.startswith('ca')",
        "true if trigger.id == 'came' else false",
        "trigger.to_state.attributes.level > 5",
        "trigger.from_state.state | int > 5",
        "trigger.from_state.state == 'elsewhere'",
        "is_it",
    ],
)
def test_an_unread_condition_on_the_event_is_skipped_and_named(condition: str, tmp_path: Path) -> None:
    more = "variables: {is_it: '{{ trigger.id | length > 4 }}'}"
    text = automation(f'[{{if: "{{{{ {condition} }}}}", then: {ON}, else: {OFF}}}]', more=more)
    homes = home(tmp_path, automation(f"[{FAN}]", f"[{MOTION}]") + text)
    assert pairs(homes) == {"motion → turn on fan.hall"}
    assert homes.notes == ("read 1 of 2 automations; 1 not: 1 template (automations.yaml, line 5, 'A')",)


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (
            f"[{{variables: {{v: \"{{{{ trigger.to_state.state == 'on' }}}}\"}}}}, {{if: '{{{{ v }}}}', then: {ON}}}]",
            {"motion → turn on light.hall"},
        ),
        (
            "[{variables: {v: \"{{ 'off' if trigger.to_state.state == 'off' else 'on' }}\"}}, "
            "{action: 'light.turn_{{ v }}', target: {entity_id: light.hall}}]",
            {"motion → turn on light.hall"},
        ),
        (f"[{ON}, {{wait_for_trigger: [{QUIET}]}}, {{delay: 60}}, {OFF}]", BOTH),
        (f"[{ON}, {{wait_for_trigger: {QUIET}, timeout: 600}}, {OFF}]", BOTH),
        (f"[{ON}, {{wait_template: \"{{{{ is_state('binary_sensor.hall_motion', 'off') }}}}\"}}, {OFF}]", BOTH),
        (
            f"[{{wait_for_trigger: {QUIET}, timeout: 5}}, {{if: '{{{{ wait.completed }}}}', then: {OFF}, else: {FAN}}}]",
            {"quiet → turn off light.hall", "motion → turn on fan.hall"},
        ),
        (
            f"[{{wait_for_trigger: {QUIET}, timeout: 5, continue_on_timeout: false}}, {OFF}]",
            {"quiet → turn off light.hall"},
        ),
        (
            f"[{{wait_for_trigger: {QUIET}, timeout: 5}}, '{{{{ wait.trigger is none }}}}', {FAN}]",
            {"motion → turn on fan.hall"},
        ),
        (f"[{ON}, {{wait_for_trigger: {{trigger: mqtt}}}}, {OFF}]", {"motion → turn on light.hall"}),
        (f"[{ON}, {{delay: 60}}, {OFF}, {FAN}]", {"motion → turn on light.hall", "motion → turn on fan.hall"}),
        (f"[{FAN}, {{stop: done}}, {ON}]", {"motion → turn on fan.hall"}),
        (f"[{{choose: {{conditions: [], sequence: [{{stop: x}}]}}}}, {ON}, {FAN}]", set()),
        (
            f"[{{if: {{condition: sun}}, then: [{{condition: trigger, id: x}}, {FAN}]}}, {ON}]",
            {"motion → turn on light.hall"},
        ),
        (f"[{{enabled: false, choose: [], default: [{OFF}]}}, {ON}]", {"motion → turn on light.hall"}),
        (
            f"[{{sequence: [{{parallel: [{ON}, {{sequence: [{FAN}]}}]}}]}}]",
            {"motion → turn on light.hall", "motion → turn on fan.hall"},
        ),
        (
            f"[{{parallel: [[{{wait_for_trigger: {QUIET}}}], {FAN}]}}, {OFF}]",
            {"motion → turn on fan.hall"} | {"quiet → turn off light.hall"},
        ),
        (
            f"[{{repeat: {{count: 3, sequence: [{ON}, {{wait_for_trigger: {QUIET}}}, {OFF}]}}}}]",
            BOTH | {"quiet → turn on light.hall"},
        ),
        (f"[{{repeat: {{count: 0, sequence: [{ON}]}}}}, {FAN}]", {"motion → turn on fan.hall"}),
        (
            f"[{{repeat: {{while: {{condition: trigger, id: x}}, sequence: [{ON}]}}}}, {FAN}]",
            {"motion → turn on fan.hall"},
        ),
        (f"[{{repeat: {{until: '{{{{ x }}}}', sequence: {ON}}}}}]", {"motion → turn on light.hall"}),
        (
            f"[{{repeat: {{until: {{condition: state, entity_id: binary_sensor.hall_motion, state: 'off'}}, "
            f"sequence: [{ON}, {{wait_for_trigger: [{QUIET}], timeout: 9}}]}}}}, {OFF}]",
            BOTH,
        ),
        (
            "[{variables: {lamps: [light.hall, light.bath]}}, {repeat: {for_each: '{{ lamps }}', "
            "sequence: {service: light.turn_on, data_template: {entity_id: '{{ repeat.item }}'}}}}]",
            {"motion → turn on light.hall", "motion → turn on light.bath"},
        ),
        (
            "[{repeat: {for_each: [hall, bath], sequence: {action: light.turn_on, "
            "target: {entity_id: 'light.{{ repeat.item }}'}}}}]",
            {"motion → turn on light.hall", "motion → turn on light.bath"},
        ),
        (
            "[{variables: {lamps: [light.hall, light.bath]}}, {service: light.turn_on, entity_id: '{{ lamps }}'}]",
            {"motion → turn on light.hall", "motion → turn on light.bath"},
        ),
        (
            "[{action: light.turn_on, data: {entity_id: 'light.hall, light.bath'}}]",
            {"motion → turn on light.hall", "motion → turn on light.bath"},
        ),
    ],
)
def test_actions_are_followed_in_their_order(actions: str, expected: set[str], tmp_path: Path) -> None:
    other = "- {triggers: {trigger: time, at: 07:00}, actions: {action: light.turn_on, entity_id: light.attic}}\n"
    found = pairs(home(tmp_path, other + automation(actions, f"[{MOTION}]")))
    assert found - {"clock.clock reaches a time → turn on light.attic"} == expected


@pytest.mark.parametrize(
    "service",
    [
        "light.turn_{{ trigger.to_state.state }}",
        "light.turn_{{ states('binary_sensor.hall_motion') }}",
        "{{ 'light.turn_on' if trigger.id == 'came' else 'light.turn_off' }}",
        "light.turn_{{ 'on' if is_state('binary_sensor.hall_motion', 'on') else 'off' }}",
        "{% if trigger.to_state.state == 'on' %}light.turn_on{% else %}light.turn_off{% endif %}",
    ],
)
@pytest.mark.parametrize(
    "triggers", [f"[{MOTION}, {QUIET}]", "{platform: state, entity_id: binary_sensor.hall_motion}"]
)
def test_a_service_that_follows_the_state_is_two_rules(service: str, triggers: str, tmp_path: Path) -> None:
    text = automation(f'[{{service: "{service}", target: {{entity_id: light.hall}}}}]', triggers)
    if "trigger.id" in service:
        text = text.replace("trigger.id == 'came'", "trigger.to_state.state == 'on'")
    assert pairs(home(tmp_path, text)) == BOTH


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ("{trigger: state, entity_id: binary_sensor.hall_motion, from: 'on'}", "quiet"),
        ("{trigger: state, entity_id: binary_sensor.hall_motion, not_to: 'on'}", "quiet"),
        (
            "{trigger: state, entity_id: binary_sensor.hall_motion, not_to: ['on', unknown], not_from: unavailable}",
            "quiet",
        ),
        ("{trigger: state, entity_id: binary_sensor.hall_motion, not_from: 'off'}", "quiet"),
        ("{trigger: state, entity_id: binary_sensor.x, not_to: [unavailable, unknown]}", "binary_sensor.x changes"),
        ("{trigger: numeric_state, entity_id: zone.home, below: 1}", "zone.home is left"),
        ("{trigger: state, entity_id: zone.home, to: '0'}", "zone.home is left"),
        ("{trigger: state, entity_id: binary_sensor.hall_motion, from: 'on', to: ['off']}", "quiet"),
        (
            "{trigger: numeric_state, entity_id: sensor.hall_humidity, below: 40}",
            "sensor.hall_humidity falls below a value",
        ),
        ("{trigger: numeric_state, entity_id: sun.sun, attribute: elevation, below: -4}", "sun.sun sets"),
        ("{trigger: template, value_template: \"{{ is_state('lock.front', 'unlocked') }}\"}", "lock.front unlocks"),
        (
            "{trigger: template, value_template: \"{{ states('sensor.a_power') | float(0) < 3 }}\"}",
            "sensor.a_power falls below a value",
        ),
        (
            "{trigger: template, value_template: \"{{ (states('sensor.a_power')|float) > 3 }}\"}",
            "sensor.a_power rises above a value",
        ),
        ("{trigger: zone, entity_id: person.ann, zone: zone.home, event: enter}", "person.ann comes home"),
        (
            "{trigger: device, device_id: d, domain: person, type: leaves, entity_id: person.ann, zone: zone.home}",
            "person.ann leaves home",
        ),
        ("{trigger: zone, entity_id: person.ann, zone: zone.work, event: leave}", "zone.work is left"),
        ("{trigger: state, entity_id: group.family, to: not_home}", "group.family leaves home"),
        ("{trigger: device, device_id: d, domain: cover, type: closed, entity_id: cover.hall}", "cover.hall closes"),
        ("{trigger: device, device_id: d, domain: binary_sensor, type: no_motion, entity_id: r1}", "quiet"),
        (
            "{trigger: device, device_id: d, domain: zha, type: remote_button_double_press, subtype: turn_off}",
            "Knob turn off is pressed twice for off",
        ),
        ("{trigger: device, device_id: d, domain: mqtt, type: action, subtype: 'off'}", "Knob off is pressed for off"),
        ("{trigger: light.turned_on, target: {entity_id: light.x}}", "light.x turns on"),
    ],
)
def test_polarity_is_part_of_an_event(trigger: str, expected: str, tmp_path: Path) -> None:
    entities = [{"entity_id": "binary_sensor.hall_motion", "id": "r1", "device_class": None, "device_id": "d"}]
    files = {
        ".storage/core.entity_registry": json.dumps({"data": {"entities": entities}}),
        ".storage/core.device_registry": json.dumps({"data": {"devices": [{"id": "d", "name": "Knob"}]}}),
    }
    assert pairs(home(tmp_path, automation(f"[{ON}]", trigger), files)) == {f"{expected} → turn on light.hall"}


@pytest.mark.parametrize(
    "trigger",
    [
        "{trigger: state, entity_id: light.x, attribute: brightness, to: 'on'}",
        "{trigger: state, entity_id: light.x, from: unavailable, to: 'on'}",
        "{trigger: state, entity_id: lock.x, from: locked}",
        "{trigger: state, entity_id: lock.x, not_from: [locked, unknown]}",
        "{trigger: numeric_state, entity_id: sensor.x, above: 3, value_template: '{{ x }}'}",
        "{trigger: template, value_template: \"{{ is_state('light.x', y) }}\"}",
        "{trigger: template, value_template: \"{{ is_state('light.x', 'on') and is_state('light.y', 'on') }}\"}",
        "{trigger: event, event_type: x}",
        "{trigger: state, entity_id: light.x, to: 'on', enabled: false}",
        "{trigger: state, entity_id: !secret x}",
    ],
)
def test_an_event_that_is_not_certain_starts_nothing(trigger: str, tmp_path: Path) -> None:
    homes = home(tmp_path, automation(f"[{ON}]") + automation(f"[{ON}]", trigger))
    assert homes.notes[0].startswith("read 1 of 2 automations; 1 not: 1 ")
    assert len(pairs(homes)) == 2


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("{action: cover.close_cover, target: {entity_id: cover.a}}", "close cover.a"),
        ("{action: light.turn_on, target: {entity_id: light.a}, data: {brightness: 0}}", "turn off light.a"),
        ("{action: light.turn_on, target: {entity_id: light.a}, data: {brightness_step_pct: -20}}", "dim light.a"),
        ("{action: light.turn_on, target: {entity_id: light.a}, data: {brightness_step: 5}}", "brighten light.a"),
        (
            "{action: light.turn_on, target: {entity_id: light.a}, data: {brightness_step: '{{ x }}'}}",
            "turn on light.a",
        ),
        ("{action: cover.set_cover_position, target: {entity_id: cover.a}, data: {position: 0}}", "close cover.a"),
        (
            "{action: climate.set_hvac_mode, target: {entity_id: climate.a}, data: {hvac_mode: 'off'}}",
            "turn off climate.a",
        ),
        (
            "{action: climate.set_hvac_mode, target: {entity_id: climate.a}, data: {hvac_mode: cool}}",
            "cool with climate.a",
        ),
        (
            "{action: climate.set_preset_mode, target: {entity_id: climate.a}, data: {preset_mode: away}}",
            "set away mode on climate.a",
        ),
        (
            "{action: media_player.volume_mute, target: {entity_id: media_player.a}, data: {is_volume_muted: false}}",
            "unmute media_player.a",
        ),
        (
            "{action: alarm_control_panel.alarm_disarm, target: {entity_id: alarm_control_panel.a}, data: {code: !secret c}}",
            "disarm alarm_control_panel.a",
        ),
        ("{action: homeassistant.turn_off, entity_id: switch.a}", "turn off switch.a"),
        ("{device_id: d, domain: lock, type: unlock, entity_id: lock.a}", "unlock lock.a"),
        ("{action: lock.lock, target: {entity_id: \"lock.{{ 'a' }}\"}}", "lock lock.a"),
    ],
)
def test_polarity_is_part_of_an_action(call: str, expected: str, tmp_path: Path) -> None:
    assert pairs(home(tmp_path, automation(f"[{call}]", f"[{MOTION}]"))) == {f"motion → {expected}"}


def test_a_number_decides_and_a_change_learns_its_side(tmp_path: Path) -> None:
    choice = "{{choose: [{{conditions: {0}, sequence: [{1}]}}, {{conditions: {2}, sequence: [{3}]}}]}}"
    above = "{condition: numeric_state, entity_id: sensor.t, above: 25}"
    below = "{condition: numeric_state, entity_id: sensor.t, below: 20}"
    both = f"[{above.replace('condition', 'trigger')}, {below.replace('condition', 'trigger')}]"
    expected = {
        "sensor.t rises above a value → turn on light.hall",
        "sensor.t falls below a value → turn off light.hall",
    }
    for triggers in (both, "{trigger: state, entity_id: sensor.t}"):
        for low in (below, "\"{{ states('sensor.t')|float < 20 }}\"", '"{{ trigger.to_state.state|int <= 20 }}"'):
            assert pairs(home(tmp_path, automation(f"[{choice.format(above, ON, low, OFF)}]", triggers))) == expected


@pytest.mark.parametrize(
    ("condition", "events"),
    [
        ("{condition: sun, after: sunset}", {"sets"}),
        ("{condition: sun, after: sunrise}", {"sets", "rises"}),
        ("{condition: sun, before: sunset}", {"rises"}),
        ("{condition: sun, before: sunrise}", set()),
        ("{condition: sun, after: sunset, before: sunrise}", {"sets"}),
        ("{condition: sun, after: sunrise, before: sunset}", {"rises"}),
        ("{condition: sun, after: sunset, after_offset: '01:00'}", {"sets", "rises"}),
        ("{condition: state, entity_id: sun.sun, state: below_horizon}", {"sets"}),
        ("\"{{ trigger.event == 'sunset' }}\"", {"sets"}),
    ],
)
def test_the_sun_decides_at_its_rise_and_set(condition: str, events: set[str], tmp_path: Path) -> None:
    triggers = "[{trigger: sun, event: sunset}, {trigger: sun, event: sunrise}]"
    found = pairs(home(tmp_path, automation(f"[{condition}, {ON}]", triggers) + automation(f"[{FAN}]", f"[{MOTION}]")))
    assert found == {f"sun.sun {event} → turn on light.hall" for event in events} | {"motion → turn on fan.hall"}


def test_three_automations_with_five_meant_pairs_give_five_rules(tmp_path: Path) -> None:
    shutters = """
- triggers: [{trigger: sun, event: sunset, id: down}, {trigger: sun, event: sunrise, id: up}]
  actions:
    choose:
      - {conditions: {condition: trigger, id: down}, sequence: {action: cover.close_cover, entity_id: cover.a}}
      - {conditions: {condition: trigger, id: up}, sequence: {action: cover.open_cover, entity_id: cover.a}}
"""
    heating = """
- triggers: {trigger: state, entity_id: binary_sensor.a_window, to: ['on', 'off']}
  actions:
    if: "{{ trigger.to_state.state == 'on' }}"
    then: {action: climate.turn_off, entity_id: climate.a}
    else: {action: climate.turn_on, entity_id: climate.a}
"""
    light = automation(f"[{ON}, {{delay: 300}}, {OFF}]", f"[{MOTION}]")
    homes = home(tmp_path, shutters + heating + light)
    assert pairs(homes) == {
        "sun.sun sets → close cover.a",
        "sun.sun rises → open cover.a",
        "binary_sensor.a_window opens → turn off climate.a",
        "binary_sensor.a_window closes → turn on climate.a",
        "motion → turn on light.hall",
    }
    assert homes.notes == (
        "read 3 of 3 automations",
        "left out of those read: 1 step that a delay takes back (first: automations.yaml, line 15)",
    )


SCRIPTS = """
evening:
  sequence:
    - {action: light.turn_on, target: {entity_id: '{{ lamp }}'}}
    - {stop: enough}
    - {action: light.turn_on, target: {entity_id: light.never}}
round: {sequence: [{action: script.round}, {action: fan.turn_on, target: {entity_id: fan.hall}}]}
later: {sequence: [{wait_for_trigger: {trigger: state, entity_id: binary_sensor.hall_motion, to: 'off'}}]}
made: {use_blueprint: {path: s.yaml, input: {who: light.hall}}}
failing: {sequence: [{stop: broken, error: true}]}
"""
SCENES = "- {id: '17', name: Film Abend, entities: {light.hall: 'on', cover.a: {state: closed}, input_text.x: y}}\n"
SCRIPT_BLUEPRINT = "{blueprint: {domain: script}, sequence: {action: light.turn_off, target: {entity_id: !input who}}}"


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("{action: script.evening, data: {lamp: light.hall}}", {"motion → turn on light.hall"}),
        (
            "{action: script.turn_on, target: {entity_id: script.evening}, data: {variables: {lamp: light.a}}}",
            {"motion → turn on light.a"},
        ),
        ("{action: script.round}", {"motion → turn on fan.hall"}),
        ("{action: script.later}", set()),
        ("{action: script.made}", {"motion → turn off light.hall"}),
        ("{action: script.absent}", set()),
        ("{scene: scene.film_abend}", {"motion → turn on light.hall", "motion → close cover.a"}),
        (
            "{action: scene.turn_on, target: {entity_id: scene.film_abend}}",
            {"motion → turn on light.hall", "motion → close cover.a"},
        ),
        ("{action: scene.apply, data: {entities: {lock.a: locked}}}", {"motion → lock lock.a"}),
    ],
)
def test_scripts_and_scenes_are_read_where_they_are_called(step: str, expected: set[str], tmp_path: Path) -> None:
    files = {"scripts.yaml": SCRIPTS, "scenes.yaml": SCENES, "blueprints/script/s.yaml": SCRIPT_BLUEPRINT}
    found = pairs(home(tmp_path, automation(f"[{step}, {OFF}]", f"[{MOTION}]"), files))
    last = "quiet → turn off light.hall" if "later" in step else "motion → turn off light.hall"
    assert found == expected | {last}


def test_a_stop_of_a_script_with_an_error_ends_its_callers(tmp_path: Path) -> None:
    actions = f"[{ON}, {{action: script.failing}}, {OFF}]"
    assert pairs(home(tmp_path, automation(actions, f"[{MOTION}]"), {"scripts.yaml": SCRIPTS})) == {
        "motion → turn on light.hall"
    }


BLUEPRINT = """
blueprint:
  domain: automation
  input:
    sensor: {name: Sensor}
    more: {input: {lamp: {default: {entity_id: light.spare}}}}
triggers: {trigger: state, entity_id: !input sensor, to: 'on'}
actions: [{action: light.turn_on, target: !input lamp}, {action: fan.turn_on, target: !input absent}]
"""


def test_a_blueprint_is_read_with_its_inputs(tmp_path: Path) -> None:
    text = "- use_blueprint: {path: me/b.yaml, input: {sensor: binary_sensor.hall_motion}}\n"
    text += "- use_blueprint: {path: homeassistant/motion_light.yaml, input: "
    text += "{motion_entity: binary_sensor.hall_motion, light_target: {entity_id: light.hall}}}\n"
    homes = home(tmp_path, text, {"blueprints/automation/me/b.yaml": BLUEPRINT})
    assert pairs(homes) == BOTH | {"motion → turn on light.spare"}
    assert "1 blueprint input without a value (first: blueprints/automation/me/b.yaml, line 8)" in homes.notes[1]


def test_a_configuration_is_read_with_packages_and_includes(tmp_path: Path) -> None:
    files = {
        "configuration.yaml": "homeassistant: {packages: !include_dir_named packs, customize: !include c.yaml}\n"
        "automation ui: !include automations.yaml\nautomation old: !include_dir_merge_list autos\n"
        "script: !include_dir_merge_named scripts\nhttp: {password: !secret x}\nsensor: !include absent.yaml\n",
        "c.yaml": "binary_sensor.x9: {device_class: door}\n",
        "packs/made.yaml": "template: [{binary_sensor: {name: Hall Motion, device_class: motion}}]\n"
        "mqtt: {binary_sensor: [{name: x9, device_class: smoke}, {name: no class}]}\n",
        "packs/old.yaml": "binary_sensor: [{name: All W, device_class: window}, {sensors: {low: {device_class: battery}}}]\n",
        "packs/hall.yaml": f"automation: [{{triggers: {MOTION}, actions: !include ../on.yaml}}]\n"
        "script: {dark: {sequence: {action: light.turn_off, entity_id: light.hall}}}\n",
        "on.yaml": f"- {ON}\n",
        "autos/deep/a.yaml": f"- {{triggers: {QUIET}, actions: {{action: script.dark}}}}\n",
        "autos/b.yaml": "- {trigger: {platform: state, entity_id: [binary_sensor.x9, binary_sensor.all_w, binary_sensor.low, "
        "binary_sensor.rauchmelder_bad], to: 'on'}, action: {action: script.fan}}\n",
        "scripts/s.yaml": f"fan: {{sequence: [{FAN}]}}\n",
        "secrets.yaml": "x: [\n",
        "automations/stray.yaml": "- [\n",
    }
    text = "- {triggers: !include ../x.yaml, actions: !include secrets.yaml}\n"
    homes = home(tmp_path, text, files)
    events = ("x9 opens", "all_w opens", "low runs low", "rauchmelder_bad detects smoke")
    assert pairs(homes) == BOTH | {f"binary_sensor.{event} → turn on fan.hall" for event in events}
    assert homes.notes == (
        "read 3 of 4 automations; 1 not: 1 !include of a file that is not in the folder (automations.yaml, line 1)",
    )


def test_files_that_include_each_other_end(tmp_path: Path) -> None:
    files = {"a.yaml": "- !include b.yaml\n", "b.yaml": "- !include a.yaml\n- 5\n"}
    homes = home(tmp_path, automation(f"[{ON}]") + "- !include a.yaml\n- !include_dir_list .\n", files)
    assert len(pairs(homes)) == 2


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("packs/p.yaml", "automation:\n  - a: [\n", 3),
        ("blueprints/automation/b.yaml", "a: 1\n b: 2\n", 2),
        ("scripts.yaml", "a:\n\t- b\n", 2),
    ],
)
def test_a_malformed_file_is_named_with_its_line(name: str, text: str, line: int, tmp_path: Path) -> None:
    files = {"configuration.yaml": "homeassistant: {packages: !include_dir_named packs}\n", name: text}
    with pytest.raises(DataError, match=f"{name}, line {line}: not YAML"):
        home(tmp_path, automation(f"[{ON}]") + "- use_blueprint: {path: b.yaml}\n", files)


def test_an_automation_that_is_off_is_no_rule(tmp_path: Path) -> None:
    registry = {"entity_id": "automation.a", "unique_id": "7", "disabled_by": "user"}
    files = {".storage/core.entity_registry": json.dumps({"data": {"entities": [registry]}})}
    off = [automation(f"[{FAN}]", more=more) for more in ("initial_state: false", "enabled: 'off'", "id: '7'")]
    homes = home(tmp_path, automation(f"[{ON}]") + "".join(off), files)
    assert homes.notes[0].startswith("read 1 of 4 automations; 3 not: 3 automations that are switched off (")
    assert len(pairs(homes)) == 2


def test_targets_are_resolved_by_device_area_floor_and_label(tmp_path: Path) -> None:
    def entity(name: str, **more: object) -> dict[str, object]:
        return {"entity_id": name, "id": name, "device_id": "d", "labels": [], **more}

    entities = [
        entity("light.a", labels=["cosy"]),
        entity("light.b", area_id="bath"),
        entity("light.c", hidden_by="user"),
        entity("light.d", entity_category="config"),
        entity("switch.e"),
        entity("binary_sensor.f"),
    ]
    areas = [{"id": "hall", "name": "Hall", "floor_id": "g"}, {"id": "bath", "name": "Bath", "floor_id": "u"}]
    files = {
        ".storage/core.entity_registry": json.dumps({"data": {"entities": entities}}),
        ".storage/core.device_registry": json.dumps({"data": {"devices": [{"id": "d", "area_id": "hall"}]}}),
        ".storage/core.area_registry": json.dumps({"data": {"areas": areas}}),
        ".storage/core.floor_registry": json.dumps({"data": {"floors": [{"floor_id": "g", "name": "Ground"}]}}),
    }
    for target, expected in {
        "device_id: d": {"light.a", "light.b"},
        "area_id: hall": {"light.a"},
        "area_id: [hall, bath]": {"light.a", "light.b"},
        "floor_id: u": {"light.b"},
        "label_id: cosy": {"light.a"},
        "entity_id: all": {"light.a", "light.b", "light.c", "light.d"},
    }.items():
        homes = home(tmp_path, automation(f"[{{action: light.turn_on, target: {{{target}}}}}]", f"[{MOTION}]"), files)
        assert pairs(homes) == {f"motion → turn on {name}" for name in expected}
    text = automation("[{action: homeassistant.turn_off, target: {area_id: hall}}]", f"[{MOTION}]")
    homes = home(tmp_path, text, files)
    assert pairs(homes) == {"motion → turn off light.a", "motion → turn off switch.e"}
    areas_of = {device.name: device.area for device in homes.units[0].devices}
    assert (areas_of["light.a"], areas_of["light.b"], areas_of["binary_sensor.hall_motion"]) == (
        "Ground / Hall",
        "Bath",
        None,
    )


def test_courses_without_end_are_counted_not_walked(tmp_path: Path) -> None:
    deep = "".join(
        f"s{k}: {{sequence: [{{action: script.s{k + 1}}}, {{action: script.s{k + 1}}}]}}\n" for k in range(40)
    )
    homes = home(tmp_path, automation(f"[{ON}]") + automation("[{action: script.s0}]"), {"scripts.yaml": deep})
    assert homes.notes[0].startswith("read 1 of 2 automations; 1 not: 1 endless or too deep call of scripts (")
    names = ", ".join(f"light.l{k}" for k in range(250))
    wait = f"{{wait_for_trigger: {{trigger: state, entity_id: [{names}]}}}}"
    homes = home(tmp_path, automation(f"[{wait}, {wait}, {FAN}]"))
    assert len(pairs(homes)) == 250
    homes = home(
        tmp_path,
        automation(f"[{ON}]") + automation(f"[{{repeat: {{for_each: [{names}], sequence: [{wait}, {FAN}]}}}}]"),
    )
    assert homes.notes[0].startswith("read 1 of 2 automations; 1 not: 1 automation with too many combinations (")
