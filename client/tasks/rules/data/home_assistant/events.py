"""Events that start an automation: a device, and the state that it enters."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from client.tasks.rules.data.home_assistant import tally as reasons
from client.tasks.rules.data.home_assistant.document import Block, Unread
from client.tasks.rules.data.home_assistant.registry import HomeRegistry
from client.tasks.rules.data.home_assistant.tally import Tally
from client.tasks.rules.data.home_assistant.types import (
    AT_TIME,
    CHANGES,
    CLOCK,
    ENTERED,
    FALLS,
    LEFT,
    RANGES,
    RISES,
    SUN,
    TICKS,
    device_type,
    state_name,
    triggered_state,
)

ENTITY = re.compile(r"[a-z0-9_]+\.[a-z0-9_]+")


@dataclass(frozen=True)
class Part:
    """Half of a rule.

    Args:
        entity: Entity id.
        kind: Type of the device.
        name: State that it enters, or action on it.
    """

    entity: str
    kind: str
    name: str


def as_list(value: Any) -> list[Any]:
    """Return a list, a single value as one, and texts separated by commas as several."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value if isinstance(value, list) else [] if value is None else [value]


def first_of(block: Block, *keys: str) -> Any:
    """Return the value of the first key that a block has."""
    return next((block[key] for key in keys if key in block), None)


def is_disabled(block: Block) -> bool:
    """Return True if its owner switched a trigger, a condition or an action off."""
    return str(block.get("enabled", "true")).casefold() in ("false", "no", "off")


def enabled_blocks(value: Any, tally: Tally) -> Iterator[Block]:
    """Yield the blocks of a list, or the only one; disabled and malformed ones are counted."""
    for block in value if isinstance(value, list) else [value]:
        if not isinstance(block, Block):
            tally.add(reasons.TAG if isinstance(block, Unread) else reasons.MALFORMED)
        elif is_disabled(block):
            tally.add(reasons.DISABLED, block)
        else:
            yield block


def entities_in(value: Any, registry: HomeRegistry, tally: Tally, block: Block) -> Iterator[str]:
    """Yield the entity ids of a value; others are counted."""
    for name in as_list(value):
        if isinstance(name, Unread):
            tally.add(reasons.TAG, block)
        elif not isinstance(name, str) or "{" in name:
            tally.add(reasons.TEMPLATE if isinstance(name, str) else reasons.MALFORMED, block)
        elif ENTITY.fullmatch(found := registry.find(name.casefold()).name):
            yield found
        else:
            tally.add(reasons.NO_REGISTRY, block)


def events(value: Any, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    """Yield the events of a list of triggers."""
    for block in enabled_blocks(value, tally):
        if "triggers" in block:
            yield from events(block["triggers"], registry, tally)
        else:
            yield from _event(block, registry, tally)


def _event(block: Block, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    match first_of(block, "trigger", "platform"):
        case "state":
            yield from _states(block, registry, tally)
        case "numeric_state":
            name = RANGES if "above" in block and "below" in block else RISES if "above" in block else FALLS
            yield from _parts(block, name, registry, tally)
        case "device":
            yield from _device(block, registry, tally)
        case "sun":
            yield Part(SUN, "Sun", "rises" if block.get("event") == "sunrise" else "sets")
        case "time":
            yield Part(CLOCK, "Clock", AT_TIME)
        case "time_pattern":
            yield Part(CLOCK, "Clock", TICKS)
        case "zone":
            name = LEFT if block.get("event") == "leave" else ENTERED
            for zone in entities_in(block.get("zone"), registry, tally, block):
                yield Part(zone, "Zone", name)
        case "template":
            tally.add(reasons.TEMPLATE, block)
        case _:
            tally.add(reasons.TRIGGER, block)


def _states(block: Block, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    states = as_list(block.get("to"))
    for state in states:
        if isinstance(state, str) and state not in ("null", "~", ""):
            yield from _parts(block, state, registry, tally, is_state=True)
        else:
            yield from _parts(block, CHANGES, registry, tally)
    if not states:
        yield from _parts(block, CHANGES, registry, tally)


def _device(block: Block, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    """Yield the event of a trigger that the user interface made."""
    domain, kind = str(block.get("domain")), str(block.get("type"))
    if "entity_id" not in block:
        tally.add(reasons.TRIGGER, block)
    elif domain == "sensor":
        yield from _parts(block, RISES if "above" in block else FALLS if "below" in block else CHANGES, registry, tally)
    else:
        state = triggered_state(domain, kind)
        yield from _parts(block, state or CHANGES, registry, tally, is_state=bool(state))


def _parts(block: Block, name: str, registry: HomeRegistry, tally: Tally, *, is_state: bool = False) -> Iterator[Part]:
    """Yield an event of each entity of a block: a named one, or a state by its value."""
    for entity in entities_in(block.get("entity_id"), registry, tally, block):
        kind = device_type(entity, registry.find(entity).device_class)
        if kind is None:
            tally.add(reasons.DEVICE, block)
            continue
        state = state_name(kind, name) if is_state else name
        if state is None:
            tally.add(reasons.STATE, block)
        else:
            yield Part(entity, kind, state)
