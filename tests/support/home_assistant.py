"""Homes of Home Assistant in a folder, and their rules in words."""

from collections.abc import Mapping
from pathlib import Path

from client.tasks.rules.data.homes import Homes
from client.tasks.rules.data.reader import read_homes
from common.tasks.rules.vocabulary import relation_parts

SHORT = {"binary_sensor.hall_motion detects motion": "motion", "binary_sensor.hall_motion sees no motion": "quiet"}

MOTION = "{trigger: state, entity_id: binary_sensor.hall_motion, to: 'on', id: came, variables: {moves: true}}"
QUIET = "{trigger: state, entity_id: binary_sensor.hall_motion, to: 'off', id: went, variables: {moves: false}}"
ON = "{action: light.turn_on, target: {entity_id: light.hall}}"
OFF = "{action: light.turn_off, target: {entity_id: light.hall}}"
FAN = "{action: fan.turn_on, target: {entity_id: fan.hall}}"
BOTH = {"motion → turn on light.hall", "quiet → turn off light.hall"}


def automation(actions: str, triggers: str = f"[{MOTION}, {QUIET}]", more: str = "") -> str:
    """Return the text of an automation."""
    return f"- alias: A\n  triggers: {triggers}\n  actions: {actions}\n  {more}\n"


def home(folder: Path, automations: str = "", files: Mapping[str, str] | None = None) -> Homes:
    """Write a home with these automations and files, and read it."""
    for name, text in {"automations.yaml": automations, **(files or {})}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if text:
            (folder / name).write_text(text, "utf-8")
    return read_homes(folder)


def pairs(homes: Homes) -> set[str]:
    """Return the rules of the only home as `event → action device`."""
    [one] = homes.units
    found = set()
    for u, v, r in one.rules.tolist():
        state, action = relation_parts(homes.vocabulary.relations[r])
        event = f"{one.devices[u].name} {state}"
        found.add(f"{SHORT.get(event, event)} → {action} {one.devices[v].name}")
    return found
