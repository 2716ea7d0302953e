"""Recommended rules as automations of Home Assistant, to be pasted and switched on by their owner."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from client.tasks.rules.data.home_assistant.conditions import DARK, DAY, NOBODY, SOMEBODY
from client.tasks.rules.data.home_assistant.registry import (
    CHANGES,
    SUN,
    action_data,
    domain_of,
    service_name,
    state_value,
)
from client.tasks.rules.data.home_assistant.triggers import ENTITY, HOME
from common.text import printable

NOTHING = "# no rule\n[]\n"


@dataclass(frozen=True)
class ProposedRule:
    """Rule to write.

    Args:
        trigger: Name of the trigger device; written if it is an entity id.
        trigger_type: Type of the trigger device.
        state: State that it enters.
        action: Action.
        device: Name of the device it is done to.
        sentence: Rule in words.
        about: Likelihood and reason in words.
        undoing: State and action of the rule that undoes it, if the two are one suggestion.
        circumstances: Circumstances of the rule, not of the one that undoes it, in the words of the reader.
    """

    trigger: str
    trigger_type: str
    state: str
    action: str
    device: str
    sentence: str
    about: str
    undoing: tuple[str, str] = ("", "")
    circumstances: str = ""


def write_automations(rules: Sequence[ProposedRule], run: str) -> str:
    """Return YAML of the rules, best first; rules that cannot be written are comments."""
    lines = [f"# by fedloom, run {printable(run, 100)}; off until you turn them on\n"]
    for rule in rules:
        found = _automation(rule, run)
        if isinstance(found, str):
            lines.append(f"# not written: {printable(rule.sentence)} ({found})\n")
        else:
            lines.append(yaml.safe_dump([found], sort_keys=False, allow_unicode=True, width=120))
    return "".join(lines) if any(not line.startswith("#") for line in lines) else "".join([*lines, NOTHING])


def _automation(rule: ProposedRule, run: str) -> Mapping[str, Any] | str:
    """Return an automation, or the reason why there is none; the trigger's id chooses of two rules."""
    if not (ENTITY.fullmatch(rule.trigger) and ENTITY.fullmatch(rule.device)):
        return "no entity id"
    halves = [(rule.state, rule.action), rule.undoing] if rule.undoing[0] else [(rule.state, rule.action)]
    triggers, actions = list[dict[str, Any]](), list[dict[str, Any]]()
    for state, action in halves:
        trigger = _trigger(rule, state)
        service, data = action_data(rule.device, action) or (service_name(rule.device, action), {})
        if trigger is None or service is None:
            name = state if trigger is None else action
            return f"'{printable(name, 40)}' has no value in Home Assistant that the model gives"
        triggers.append(trigger)
        call: dict[str, Any] = {"action": f"{domain_of(rule.device)}.{service}", "target": {"entity_id": rule.device}}
        actions.append(call | ({"data": data} if data else {}))
    conditions = [_condition(text) for text in rule.circumstances.split(" and ") if text]
    if len(halves) > 1:
        triggers = [{**trigger, "id": name} for trigger, name in zip(triggers, IDS, strict=True)]
        chosen: list[dict[str, Any]] = [
            {"conditions": [{"condition": "trigger", "id": name}, *more], "sequence": [action]}
            for name, action, more in zip(IDS, actions, (conditions, []), strict=True)
        ]
        actions, conditions = [{"choose": chosen}], []
    name = "\0".join((rule.trigger, rule.state, rule.action, rule.device))
    return {
        "id": f"fedloom_{hashlib.sha256(name.encode()).hexdigest()[:10]}",
        "alias": printable(rule.sentence, 200),
        "description": f"fedloom run {printable(run, 100)}: {printable(rule.about, 300)}; check before enabling",
        "triggers": triggers,
        "conditions": conditions,
        "actions": actions,
        "mode": "single",
        "initial_state": False,
    }


IDS = "does", "undoes"
"""Ids of the two triggers of an automation."""


CONDITIONS: dict[str, dict[str, Any]] = {
    DARK: {"condition": "state", "entity_id": SUN, "state": "below_horizon"},
    DAY: {"condition": "state", "entity_id": SUN, "state": "above_horizon"},
    SOMEBODY: {"condition": "numeric_state", "entity_id": HOME, "above": 0},
    NOBODY: {"condition": "state", "entity_id": HOME, "state": "0"},
}
"""Circumstances in words -> condition."""


def _condition(text: str) -> dict[str, Any]:
    """Return the condition of circumstances, or of times such as `after 22:00 before 06:00`."""
    words = text.split()
    return CONDITIONS.get(text) or {"condition": "time", **dict(zip(words[::2], words[1::2], strict=True))}


def _trigger(rule: ProposedRule, state: str) -> dict[str, Any] | None:
    """Return the trigger of a state of a rule; None if a value is missing."""
    if rule.trigger == SUN and state in ("rises", "sets"):
        return {"trigger": "sun", "event": "sunrise" if state == "rises" else "sunset"}
    plain = {"trigger": "state", "entity_id": rule.trigger}
    if state == CHANGES:
        return plain
    value = state_value(rule.trigger_type, state)
    return plain | {"to": value} if value is not None else None
