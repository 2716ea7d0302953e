"""Homes of Home Assistant as rows of rules: events of automations, and services called on devices."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow

from client.tasks.rules.data.home_assistant import document as reasons
from client.tasks.rules.data.home_assistant.document import Block, Tally, Unread, load_yaml
from client.tasks.rules.data.home_assistant.registry import (
    AT_TIME,
    CHANGES,
    CLOCK,
    ENTERED,
    FALLS,
    FILES,
    LEFT,
    RANGES,
    RISES,
    SUN,
    TICKS,
    HomeRegistry,
    action_name,
    called_service,
    device_type,
    domain_of,
    read_registry,
    state_name,
    table,
    triggered_state,
)
from client.tasks.rules.data.homes import COLUMNS
from client.tasks.rules.data.rows import RuleRows, encode_rows
from common.errors import DataError

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


def enabled_blocks(value: Any, tally: Tally) -> Iterator[Block]:
    """Yield the blocks of a list, or the only one; disabled and malformed ones are counted."""
    for block in value if isinstance(value, list) else [value]:
        if not isinstance(block, Block):
            tally.add(reasons.TAG if isinstance(block, Unread) else reasons.MALFORMED)
        elif str(block.get("enabled", "true")).casefold() in ("false", "no", "off"):  # its owner switched it off
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
            yield from _events_of(block, name, registry, tally)
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
            yield from _events_of(block, state, registry, tally, is_state=True)
        else:
            yield from _events_of(block, CHANGES, registry, tally)
    if not states:
        yield from _events_of(block, CHANGES, registry, tally)


def _device(block: Block, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    """Yield the event of a trigger that the user interface made."""
    domain, kind = str(block.get("domain")), str(block.get("type"))
    if "entity_id" not in block:
        tally.add(reasons.TRIGGER, block)
    elif domain == "sensor":
        yield from _events_of(
            block, RISES if "above" in block else FALLS if "below" in block else CHANGES, registry, tally
        )
    else:
        state = triggered_state(domain, kind)
        yield from _events_of(block, state or CHANGES, registry, tally, is_state=bool(state))


def _events_of(
    block: Block, name: str, registry: HomeRegistry, tally: Tally, *, is_state: bool = False
) -> Iterator[Part]:
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


CONDITIONS = ("conditions", "condition", "if", "while", "until")
SEQUENCES = ("sequence", "then", "else", "default", "parallel")
"""Keys of blocks that hold conditions, and actions."""


def calls(value: Any, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    """Yield the calls of a list of actions, also within choices, branches and loops."""
    for block in enabled_blocks(value, tally):
        yield from _call(block, registry, tally)


def count_conditions(block: Block, tally: Tally) -> None:
    """Count the conditions of a block, which are ignored."""
    for key in CONDITIONS:
        value = block.get(key, [])
        for condition in value if isinstance(value, list) else [value]:
            tally.add(reasons.CONDITION, condition)


def _call(block: Block, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    service = first_of(block, "action", "service")
    if isinstance(service, Unread):
        tally.add(reasons.TAG, block)
    elif isinstance(service, str):
        yield from _service(service, block, registry, tally)
    elif "scene" in block:
        tally.add(reasons.SCENE, block)
    elif "device_id" in block and "type" in block:
        yield from _called_device(block, registry, tally)
    count_conditions(block, tally)
    for branch in as_list(block.get("choose")):
        if isinstance(branch, Block):
            count_conditions(branch, tally)
            yield from calls(branch.get("sequence", []), registry, tally)
    nested = block.get("repeat")
    for holder in (block, nested) if isinstance(nested, Block) else (block,):
        if holder is nested:
            count_conditions(nested, tally)
        for key in SEQUENCES:
            if key in holder:
                yield from calls(holder[key], registry, tally)


def _service(service: str, block: Block, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    domain, _, name = service.strip().partition(".")
    if "{" in service:
        tally.add(reasons.TEMPLATE, block)
    elif domain in ("notify", "persistent_notification", "tts"):
        tally.add(reasons.NOTIFICATION, block)
    elif domain in ("scene", "script"):
        tally.add(reasons.SCENE, block)
    else:
        for entity in _targets(domain, block, registry, tally):
            yield from _part(entity, name, block, registry, tally)


def _targets(domain: str, block: Block, registry: HomeRegistry, tally: Tally) -> Iterator[str]:
    """Yield the entities that a call names itself, by their device or by their area."""
    for holder in (block.get("target"), block.get("data"), block):
        if not isinstance(holder, Block):
            continue
        yield from entities_in(holder.get("entity_id"), registry, tally, block)
        for key, find in (("device_id", registry.of_device), ("area_id", registry.of_area)):
            for name in as_list(holder.get(key)):
                found = find(name, domain) if isinstance(name, str) else []
                yield from found
                if not found:
                    tally.add(reasons.NO_REGISTRY, block)


def _called_device(block: Block, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    """Yield the call of an action that the user interface made."""
    service = called_service(str(block.get("domain")), str(block["type"]))
    for entity in entities_in(block.get("entity_id"), registry, tally, block):
        yield from _part(entity, service, block, registry, tally)


def _part(entity: str, service: str, block: Block, registry: HomeRegistry, tally: Tally) -> Iterator[Part]:
    kind = device_type(entity, registry.find(entity).device_class)
    action = action_name(entity, service)
    if domain_of(entity) in ("scene", "script"):
        tally.add(reasons.SCENE, block)
    elif kind is None or action is None:
        tally.add(reasons.DEVICE if kind is None else reasons.SERVICE, block)
    else:
        yield Part(entity, kind, action)


SUFFIXES = (".yaml", ".yml")
AUTOMATIONS = "automations"
MOST_PRODUCTS, MOST_RULES, MOST_IDLE = 10_000, 1_000_000, 60
"""Rules of an automation, rules of all homes, and devices of a home that no rule names."""

GENERIC = frozenset({"binary_sensor", "device_tracker", "group", "sensor", "weather", "zone"})
"""Domains of which only entities of a class in the table are devices without a rule of their own."""

Row = tuple[str | None, ...]


def is_home_assistant(path: Path) -> bool:
    """Return True if a path is an automation file, a home's configuration, or a folder of such homes."""
    return bool(homes_of(path))


def homes_of(path: Path) -> list[tuple[str, Path, list[Path]]]:
    """Return the name, the folder and the automation files of each home; none if there is none."""
    if path.is_file():
        folder = path.resolve().parent
        return [(folder.name or "home", folder, [path])] if path.suffix.lower() in SUFFIXES else []
    if not path.is_dir():
        return []
    if _is_home(path):
        return [(path.resolve().name or "home", path, _files(path))]
    inside = [folder for folder in sorted(path.iterdir()) if folder.is_dir() and not folder.is_symlink()]
    return [(folder.name, folder, _files(folder)) for folder in inside if _is_home(folder)]


def read_home_assistant(path: Path) -> tuple[RuleRows, tuple[str, ...]]:
    """Return the rules of all homes of a path, and notes on what was not read.

    Raises:
        DataError: A file is malformed, or there is no device.
    """
    rows, tally = list[Row](), Tally()
    for home, folder, files in homes_of(path):
        registry, devices = read_registry(folder), set[str]()
        for part in _rules(files, path if path.is_dir() else path.parent, registry, tally):
            rows.append((home, *part))
            devices |= {str(part[1]), str(part[-1])}
            if len(rows) > MOST_RULES:
                raise DataError(f"more than {MOST_RULES:,} rules; give fewer homes", path)
        rows += [(home, kind, name, None, None, None, None) for name, kind in _idle(registry, devices)]
    notes = tuple(tally.notes())
    if not rows:
        raise DataError(f"no device in the automations ({'; '.join(notes)})", path)
    columns = (pyarrow.array(column, pyarrow.string()) for column in zip(*rows, strict=True))
    return encode_rows(dict(zip(COLUMNS, columns, strict=True))), notes


def _is_home(folder: Path) -> bool:
    return bool(_files(folder)) or (folder / FILES[0]).is_file()


def _files(folder: Path) -> list[Path]:
    """Return the automation files of a home; symbolic links are left out."""
    files = [folder / f"{AUTOMATIONS}{suffix}" for suffix in SUFFIXES]
    more = [file for file in sorted((folder / AUTOMATIONS).rglob("*")) if file.suffix.lower() in SUFFIXES]
    return [file for file in (*files, *more) if file.is_file() and not file.is_symlink()]


def _rules(files: list[Path], root: Path, registry: HomeRegistry, tally: Tally) -> Iterator[Row]:
    """Yield type, entity and state of a trigger, then action, type and entity of a device."""
    for file in files:
        tally.file, tally.line = str(file.relative_to(root)), 1
        content = load_yaml(file)
        for block in content if isinstance(content, list) else [content]:
            if content is None:
                continue
            tally.automations += 1
            tally.line = block.line if isinstance(block, Block) else tally.line
            found = list(_products(block, registry, tally))
            tally.read += bool(found)
            yield from found


def _products(block: Any, registry: HomeRegistry, tally: Tally) -> Iterator[Row]:
    """Yield a rule for each event and each call of an automation."""
    if not isinstance(block, Block):
        tally.add(reasons.MALFORMED)
        return
    if "use_blueprint" in block:
        tally.add(reasons.BLUEPRINT, block)
        return
    count_conditions(block, tally)
    starts = _distinct(events(first_of(block, "triggers", "trigger") or [], registry, tally))
    ends = _distinct(calls(first_of(block, "actions", "action") or [], registry, tally))
    if len(starts) * len(ends) > MOST_PRODUCTS:
        tally.add(reasons.PRODUCT, block)
    elif not ends:
        tally.add(reasons.NO_CALL, block)
    elif not starts:
        tally.add(reasons.NO_EVENT, block)
    else:
        for start, end in product(starts, ends):
            yield start.kind, start.entity, start.name, end.name, end.kind, end.entity


def _distinct(found: Iterator[Part]) -> list[Part]:
    return list(dict.fromkeys(found))


def _idle(registry: HomeRegistry, used: set[str]) -> list[tuple[str, str]]:
    """Return devices of the registry that no rule names: those that can act, and sensors of a class."""
    found = []
    for entity in sorted(registry.entities.values(), key=lambda one: one.name):
        kind, domain = device_type(entity.name, entity.device_class), domain_of(entity.name)
        useful = domain not in GENERIC or f"{domain}.{entity.device_class}" in table()["types"]
        if kind and useful and entity.listed and entity.name not in used:
            found.append((entity.name, kind))
    return found[:MOST_IDLE]
