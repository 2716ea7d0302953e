"""Recommended rules as automations of Home Assistant, to be pasted and switched on by their owner."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from client.tasks.rules.data.home_assistant.reader import ENTITY
from client.tasks.rules.data.home_assistant.registry import CHANGES, SUN, domain_of, service_name, state_value
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
        score: Score of the model.
    """

    trigger: str
    trigger_type: str
    state: str
    action: str
    device: str
    sentence: str
    score: float


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
    """Return an automation, or the reason why there is none."""
    if not (ENTITY.fullmatch(rule.trigger) and ENTITY.fullmatch(rule.device)):
        return "no entity id"
    trigger, service = _trigger(rule), service_name(rule.device, rule.action)
    if trigger is None:
        return f"'{printable(rule.state, 40)}' has no value in Home Assistant that the model gives"
    if service is None:
        return f"'{printable(rule.action, 40)}' has no value in Home Assistant that the model gives"
    name = "\0".join((rule.trigger, rule.state, rule.action, rule.device))
    return {
        "id": f"fedloom_{hashlib.sha256(name.encode()).hexdigest()[:10]}",
        "alias": printable(rule.sentence, 200),
        "description": f"fedloom run {printable(run, 100)}, score {rule.score:.2f}; check before enabling",
        "triggers": [trigger],
        "conditions": [],
        "actions": [{"action": f"{domain_of(rule.device)}.{service}", "target": {"entity_id": rule.device}}],
        "mode": "single",
        "initial_state": False,
    }


def _trigger(rule: ProposedRule) -> dict[str, str] | None:
    """Return the trigger of a rule; None if a value is missing."""
    if rule.trigger == SUN and rule.state in ("rises", "sets"):
        return {"trigger": "sun", "event": "sunrise" if rule.state == "rises" else "sunset"}
    plain = {"trigger": "state", "entity_id": rule.trigger}
    if rule.state == CHANGES:
        return plain
    state = state_value(rule.trigger_type, rule.state)
    return plain | {"to": state} if state is not None else None
