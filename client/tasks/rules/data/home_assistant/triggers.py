"""Triggers of Home Assistant as events of devices."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from client.tasks.rules.data.home_assistant import document as reasons
from client.tasks.rules.data.home_assistant.configuration import Configuration
from client.tasks.rules.data.home_assistant.document import Block, Tally, Unread
from client.tasks.rules.data.home_assistant.registry import (
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
    HomeRegistry,
    domain_of,
    state_name,
    states_of,
    table,
    triggered_state,
)

ENTITY = re.compile(r"[a-z0-9_]+\.[a-z0-9_]+")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
MOST_STATES, LOST = 100, {"unavailable", "unknown", "none"}
"""States of a trigger; those of a device that Home Assistant does not reach."""
HOME, HORIZONS = "zone.home", {"sunrise": "above_horizon", "sunset": "below_horizon"}
QUOTED = r"'[^']*'|\"[^\"]*\""
IS_STATE = re.compile(rf"is_state\(\s*({QUOTED})\s*,\s*(.+?)\s*\)")
STATES = re.compile(rf"states\(\s*({QUOTED})\s*\)|states\.([a-z0-9_]+\.[a-z0-9_]+)\.state")
COMPARED = re.compile(r"(.+?)\s*(==|!=|>=|<=|>|<|\bnot\s+in\b|\bin\b|\bis\s+not\b|\bis\b)\s*(.+)", re.DOTALL)
FILTERS = re.compile(r"\|\s*(float|int|string|lower|trim)\b\s*(\([^()]*\))?")
EXPRESSION = re.compile(r"\{\{-?\s*((?:(?!\{\{|\}\}).){1,500}?)\s*-?\}\}", re.DOTALL)
"""Forms of templates that are read without running them."""


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


@dataclass(frozen=True)
class Event:
    """Event that a trigger waits for.

    Args:
        part: Device and its state as a rule names it.
        id: Id of the trigger, which conditions ask for.
        index: Number of the trigger in its list, from 0.
        platform: Kind of the trigger.
        about: Its `event`, such as `leave`; may be empty.
        value: State of Home Assistant that the device enters; None if it is open.
        low: Bound below the device's number.
        high: Bound above it.
        variables: Name -> value of the variables of the trigger.
    """

    part: Part
    id: str = ""
    index: str = ""
    platform: str = ""
    about: str = ""
    value: str | None = None
    low: float = -math.inf
    high: float = math.inf
    variables: Mapping[str, Any] = field(default_factory=Block, compare=False)

    def in_state(self, value: str) -> "Event":
        """Return the event with a state that is known now."""
        return replace(self, part=replace(self.part, name=str(state_name(self.part.kind, value))), value=value)


@dataclass(frozen=True)
class View:
    """Home in which an automation is read.

    Args:
        home: Configuration of the home.
        registry: Registries of the home.
        tally: Counts of what is not read.
        scope: Name -> value of the variables there.
        when: Circumstances on which the conditions there insist, in words.
    """

    home: Configuration
    registry: HomeRegistry
    tally: Tally
    scope: Mapping[str, Any] = field(default_factory=dict)
    when: frozenset[str] = frozenset()


def as_list(value: Any) -> list[Any]:
    """Return a list, a single value as one, and texts separated by commas as several."""
    if isinstance(value, str) and "{" not in value:
        return [part.strip() for part in value.split(",") if part.strip()]
    return value if isinstance(value, list) else [] if value is None else [value]


def first_of(block: Block, *keys: str) -> Any:
    """Return the value of the first key that a block has."""
    return next((block[key] for key in keys if key in block), None)


def part_of(block: Block, *keys: str) -> Block:
    """Return the mapping at the first key that a block has; an empty one without it."""
    found = first_of(block, *keys)
    return found if isinstance(found, Block) else Block()


def enabled_blocks(value: Any, view: View) -> Iterator[Block]:
    """Yield the blocks of a list, or the only one; disabled and malformed ones are counted."""
    for block in value if isinstance(value, list) else [value]:
        if not isinstance(block, Block):
            view.tally.add(unread_reason(block))
        elif is_enabled(block, view):
            yield block


def unread_reason(value: Any) -> str:
    """Return the reason why a value of another form is not read."""
    if not isinstance(value, Unread):
        return reasons.TEMPLATE if isinstance(value, str) and "{" in value else reasons.MALFORMED
    return {"!inp": reasons.INPUT, "!inc": reasons.INCLUDE}.get(value.tag[:4], reasons.TAG)


def is_enabled(block: Block, view: View) -> bool:
    """Return True unless its owner switched a block off, or a template decides that."""
    given = block.get("enabled", "true")
    if isinstance(given, str) and given.strip().casefold() in ("true", "yes", "on", "1"):
        return True
    is_off = isinstance(given, str) and "{" not in given
    view.tally.add(reasons.DISABLED if is_off else unread_reason(given), block)
    return False


def number_of(value: Any) -> float | None:
    """Return the number that a text is; None for others, such as an entity id."""
    return float(value) if isinstance(value, str) and NUMBER.fullmatch(value.strip()) else None


def entity_of(name: Any, view: View, block: Block) -> str | None:
    """Return the entity id of a name or of an id in the registry; None, which is counted, if it is none."""
    if not isinstance(name, str) or "{" in name:
        view.tally.add(unread_reason(name), block)
        return None
    found = view.registry.find(name.strip().casefold()).name
    if not ENTITY.fullmatch(found):
        view.tally.add(view.registry.lacking, block)
        return None
    return found


def events(value: Any, view: View) -> list[Event]:
    """Return the events of a list of triggers."""
    flat = list(_flat(value))
    found: dict[Event, None] = {}
    for number, block in enumerate(flat):
        for item in enabled_blocks(block, view):
            platform = first_of(item, "trigger", "platform")
            name = str(item.get("id", number))
            about = str(item.get("event", "enter" if platform == "zone" else ""))
            for event in _events(platform, item, view):
                at = replace(event, id=name, index=str(number), platform=str(platform), about=about)
                found[replace(at, variables=part_of(item, "variables"))] = None
    return list(found)


def _flat(value: Any) -> Iterator[Any]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, list) or (isinstance(item, Block) and "triggers" in item):
            yield from _flat(item["triggers"] if isinstance(item, Block) else item)
        else:
            yield item


def _events(platform: Any, block: Block, view: View) -> Iterator[Event]:
    match platform:
        case "state":
            yield from _states(block, view)
        case "numeric_state":
            yield from _numbers(block, view, value=block.get("value_template"))
        case "device":
            yield from _device(block, view)
        case str(name) if "." in name:
            yield from _device(_as_device(name, block), view)
        case "sun" if block.get("event") in HORIZONS:
            value = HORIZONS[str(block["event"])]
            yield Event(Part(SUN, "Sun", str(state_name("Sun", value))), value=None if "offset" in block else value)
        case "time" | "time_pattern":
            yield Event(Part(CLOCK, "Clock", AT_TIME if platform == "time" else TICKS))
        case "zone":
            yield from _zones(block, view)
        case "event" if block.get("event_type") in table()["events"] and isinstance(block.get("event_data"), Block):
            state = table()["events"][block["event_type"]]
            yield from _states(block.with_values({**block["event_data"], "to": state}), view)
        case "template":
            yield from template_events(block.get("value_template"), view, block)
        case _:
            view.tally.add(unread_reason(platform) if isinstance(platform, Unread) else reasons.TRIGGER, block)


def _kinds(block: Block, view: View) -> Iterator[tuple[str, str]]:
    """Yield entity and type of what a trigger watches."""
    for name in as_list(block.get("entity_id")):
        if entity := entity_of(name, view, block):
            if kind := view.registry.type_of(entity):
                yield entity, kind
            else:
                view.tally.add(reasons.DEVICE, block)


def state_event(entity: str, kind: str, value: str) -> Event | None:
    """Return the event of a device that enters a state; None if the public table lacks it."""
    if kind == "Group" and value in ("home", "not_home"):
        kind = "Person"  # a group of persons
    name = state_name(kind, value)
    return Event(Part(entity, kind, name), value=value) if name else None


def _states(block: Block, view: View) -> Iterator[Event]:
    for entity, kind in _kinds(block, view):
        values = _entered(block, kind)
        found = [state_event(entity, kind, value) if isinstance(value, str) else None for value in values or ()]
        if values is None or None in found:
            view.tally.add(reasons.STATE, block)
        yield from (event for event in found if event)
        if values == []:
            yield Event(Part(entity, kind, CHANGES))


def _entered(block: Block, kind: str) -> list[Any] | None:
    """Return the states that a trigger waits for; empty for any, None if they are open."""
    to, left = ([v for v in as_list(block.get(key)) if v not in ("null", "~", "")] for key in ("to", "from"))
    not_to, not_from = ([v for v in as_list(block.get(key)) if v not in LOST] for key in ("not_to", "not_from"))
    if "attribute" in block or LOST & set(left):
        return None
    if to:
        return to if len(to) <= MOST_STATES else None
    if not (left or not_to or not_from):
        return []
    changes = [(new, old) for new in states_of(kind) for old in other_states(kind, [new])]
    entered = [n for n, old in changes if not (n in not_to or old in not_from or (left and old not in left))]
    return entered if set(left + not_to + not_from) <= set(states_of(kind)) and entered else None


def other_states(kind: str, states: list[str]) -> list[str]:
    """Return the states of a type that are none of these; empty unless it has two, and has these."""
    usual = states_of(kind)
    return [state for state in usual if state not in states] if len(usual) == 2 and {*states} <= {*usual} else []


def _numbers(block: Block, view: View, value: Any = None) -> Iterator[Event]:
    if value is not None:  # a template computes the number
        view.tally.add(reasons.TEMPLATE, block)
        return
    low, high = (number_of(block.get(key)) for key in ("above", "below"))
    for entity, kind in _kinds(block, view):
        yield number_event(entity, kind, low, high, "above" in block, "below" in block)


def number_event(entity: str, kind: str, low: float | None, high: float | None, above: bool, below: bool) -> Event:
    """Return the event of a number that comes above or below a bound, or between both."""
    name = RANGES if above and below else RISES if above else FALLS if below else CHANGES
    if entity == SUN and above != below:
        name = str(state_name("Sun", HORIZONS["sunrise" if above else "sunset"]))
    if entity == HOME and above != below:
        name = ENTERED if above else LEFT
    return Event(
        Part(entity, kind, name), low=-math.inf if low is None else low, high=math.inf if high is None else high
    )


def _zones(block: Block, view: View) -> Iterator[Event]:
    """Yield persons who come home or leave it, and other zones that are entered or left."""
    left = "leave" in (block.get("event"), str(block.get("type"))[:5])
    for name in as_list(block.get("zone")):
        zone = entity_of(name, view, block)
        if zone == HOME:
            yield from _states(block.with_values({**block, "to": "not_home" if left else "home"}), view)
        elif zone:
            yield Event(Part(zone, "Zone", LEFT if left else ENTERED))


def _as_device(name: str, block: Block) -> Block:
    """Return a trigger or condition such as `light.turned_on` on a target as one of the user interface."""
    domain, _, kind = name.partition(".")
    return block.with_values({**block, **part_of(block, "target"), "domain": domain, "type": kind})


def _device(block: Block, view: View) -> Iterator[Event]:
    """Yield the events of a trigger that the user interface made."""
    domain, kind = str(block.get("domain")), str(block.get("type"))
    if "entity_id" not in block:
        yield from _button(block, kind, view)
    elif "above" in block or "below" in block:
        yield from _numbers(block, view)
    elif kind in ("enters", "leaves"):
        yield from _zones(block, view)
    elif domain == "sensor" or triggered_state(domain, kind) == "":
        yield from (Event(Part(entity, found, CHANGES)) for entity, found in _kinds(block, view))
    else:
        yield from _states(block.with_values({"to": triggered_state(domain, kind), **block}), view)


def _button(block: Block, kind: str, view: View) -> Iterator[Event]:
    """Yield the press of a button of a remote control in the registry, each button a device of its own."""
    device = view.registry.devices.get(str(block.get("device_id")))
    presses, button = table()["presses"], str(block.get("subtype", ""))
    kind, button = (kind, button) if kind != "action" else (button, "") if button in presses else ("press", button)
    press = presses.get(kind.removeprefix("remote_").removeprefix("button_"))
    if device is None or press is None:
        view.tally.add(reasons.TRIGGER if device else view.registry.lacking, block)
        return
    name = " ".join(part for part in (device, button.replace("_", " ")) if part)
    yield Event(Part(name, "Remote control", press + table()["sides"].get(button, "")))


def template_events(text: Any, view: View, block: Block) -> list[Event]:
    """Return the event of a template that compares the state of one entity; others are counted."""
    form = EXPRESSION.fullmatch(text.strip()) if isinstance(text, str) else None
    found = _template_event(FILTERS.sub("", form[1]).strip(), view) if form else None
    if found is None:
        view.tally.add(reasons.TEMPLATE, block)
    return [found] if found else []


def _template_event(text: str, view: View) -> Event | None:
    form, compared = IS_STATE.fullmatch(text), COMPARED.fullmatch(text)
    left = form[1] if form else compared[1] if compared else ""
    named = form or STATES.fullmatch(left.strip()) or STATES.fullmatch(left.strip()[1:-1].strip())
    if named is None:
        return None
    entity = next(name for name in named.groups() if name).strip("'\"")
    kind = view.registry.type_of(entity) if ENTITY.fullmatch(entity) else None
    how, wanted = ("==", form[2]) if form else (compared[2], compared[3].strip()) if compared else ("", "")
    bound, above = number_of(wanted), how in (">", ">=")
    if kind and how == "==" and re.fullmatch(QUOTED, wanted):
        return state_event(entity, kind, wanted[1:-1])
    if kind is None or bound is None or how not in (">", ">=", "<", "<="):
        return None
    return number_event(entity, kind, bound if above else None, None if above else bound, above, not above)


def entities_of(block: Block, view: View) -> list[str]:
    """Return the entity ids of a condition."""
    names = (name.strip().casefold() for name in as_list(block.get("entity_id")) if isinstance(name, str))
    return [view.registry.find(name).name for name in names]


def plain_condition(block: Block, view: View) -> Block:
    """Return a condition of the user interface, or on zone `home`, as one on a state or a number."""
    if re.fullmatch(ENTITY, name := str(block.get("condition"))):
        block = block.with_values({**_as_device(name, block), "condition": "device"})
    kind, entities = str(block.get("type")).removeprefix("is_"), entities_of(block, view)
    match block.get("condition"):
        case "device" if {"above", "below"} & block.keys():
            return Block({**block, "condition": "numeric_state"})
        case "device" if len(entities) == 1:
            state = triggered_state(domain_of(entities[0]), kind)
            if state in states_of(view.registry.type_of(entities[0]) or ""):
                return Block({**block, "condition": "state", "state": state})
        case "zone" if block.get("zone") == HOME:
            return Block({**block, "condition": "state", "state": "home"})
    return block


def domain_fits(domain: str, entity: str) -> bool:
    """Return True if a service of a domain acts on an entity."""
    return domain in ("homeassistant", domain_of(entity)) or domain_of(entity) == "group"
