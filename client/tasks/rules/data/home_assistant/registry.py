"""Device types, states and actions of Home Assistant, and its registries in `.storage`.

Only names of the public table enter a vocabulary.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from client.data.tables.files import reading
from client.tasks.rules.data.home_assistant.document import NO_REGISTRY, NO_STORAGE
from client.tasks.rules.data.homes import FLOOR_MARK
from common.errors import DataError

CHANGES = "changes"
RISES, FALLS, RANGES = "rises above a value", "falls below a value", "enters a range"
AT_TIME, TICKS = "reaches a time", "ticks"
ENTERED, LEFT = "is entered", "is left"
"""States of triggers that name no state of Home Assistant."""

CLOCK, SUN = "clock.clock", "sun.sun"
"""Devices of every home; the first is no entity of Home Assistant."""


@cache
def table() -> dict[str, Any]:
    """Return the public table."""
    found: dict[str, Any] = json.loads(resources.files(__package__).joinpath("types.json").read_text("utf-8"))
    return found


def domain_of(entity: str) -> str:
    """Return the domain of an entity id: `light` of `light.hall`."""
    return entity.partition(".")[0]


def device_type(entity: str, device_class: str = "") -> str | None:
    """Return the type of an entity by its class or its name; None if its domain is not in the table."""
    if entity == CLOCK:
        return "Clock"
    types, domain = table()["types"], domain_of(entity)
    found: str | None = types.get(f"{domain}.{device_class or named_class(entity)}") or types.get(domain)
    return found


def named_class(entity: str) -> str:
    """Return the device class that the last such words of an entity's name stand for; may be empty."""
    known_names, words = table()["names"].get(domain_of(entity), {}), re.split(r"[._]", entity)
    ends = (words[k:end] for end in range(len(words), 0, -1) for k in (end - 2, end - 1) if k >= 0)
    return next((known_names[name] for name in map("_".join, ends) if name in known_names), "")


def broader_type(kind: str) -> str:
    """Return the type that contains a type of device, for vocabularies without it; itself if none does."""
    found: str = table()["broader"].get(kind, kind)
    return found


def state_name(kind: str, state: str) -> str | None:
    """Return the name of a state that a type of device enters; None if it is not in the table."""
    return _states(kind).get(state)


def state_value(kind: str, name: str) -> str | None:
    """Return the state of Home Assistant that a name stands for; None if it is none."""
    return next((value for value, name_of_value in _states(kind).items() if name_of_value == name), None)


def states_of(kind: str) -> Sequence[str]:
    """Return the states of Home Assistant that a type of device has."""
    return list(_states(kind))


def action_name(entity: str, service: str, data: Mapping[Any, Any] | None = None) -> str | None:
    """Return the name of a service called on an entity with data; None if it is not in the table."""
    by_data: Mapping[str, Mapping[str, str]] = table()["values"].get(f"{domain_of(entity)}.{service}", {})
    found = (names.get(_value_of(key, data or {})) for key, names in by_data.items())
    return next(filter(None, found), None) or _services(entity).get(service)


def _value_of(key: str, data: Mapping[Any, Any]) -> str:
    """Return a value of a service's data; of a step, 10 or -10 by its sign."""
    value = str(data.get(key)).strip().casefold()
    is_step = "_step" in key and re.match(r"[+-]?\d", value)
    return ("-10" if value.startswith("-") else "10") if is_step else value


def action_data(entity: str, action: str) -> tuple[str, dict[str, str]] | None:
    """Return the service and the data that an action stands for if it is one by its data alone."""
    if action in _services(entity).values():
        return None
    for service, by_data in table()["values"].items():
        for key, names in by_data.items():
            for value, name in names.items():
                if name == action and service.startswith(f"{domain_of(entity)}."):
                    return service.partition(".")[2], {key: value}
    return None


def set_service(entity: str, state: str) -> str:
    """Return the service that brings an entity to a state of a scene; empty if none does."""
    found: str = table()["set_by"].get(domain_of(entity), table()["set_by"]["*"]).get(state, "")
    return found


def is_undone(action: str, earlier: Collection[str]) -> bool:
    """Return True if an action takes one of earlier actions back."""
    pairs = table()["opposites"]
    return any([action, other] in pairs or [other, action] in pairs for other in earlier)


def service_name(entity: str, action: str) -> str | None:
    """Return the service that an action stands for; None if it is none, or needs a value besides."""
    if action in table()["incomplete"]:
        return None
    return next((service for service, name in _services(entity).items() if name == action), None)


def triggered_state(domain: str, kind: str) -> str:
    """Return the state of a device trigger, empty for any; its own name if the table has none."""
    triggers = table()["device_triggers"]
    found: str = triggers.get(domain, triggers["*"]).get(kind, kind)
    return found


def called_service(domain: str, kind: str) -> str:
    """Return the service that a device action stands for; its own name if the table has none."""
    found: str = table()["device_actions"].get(domain, {}).get(kind, kind)
    return found


def _states(kind: str) -> Mapping[str, str]:
    states = table()["states"]
    found: Mapping[str, str] = states.get(kind) or states["*"]
    return found


def _services(entity: str) -> Mapping[str, str]:
    services = table()["services"]
    found: Mapping[str, str] = services.get(domain_of(entity), services["*"])
    return found


STORAGE = Path(".storage")
ENTITIES, DEVICES, AREAS, FLOORS = (STORAGE / f"core.{name}_registry" for name in ("entity", "device", "area", "floor"))
MOST_BYTES = 64 * 2**20
"""Bytes of a registry."""


@dataclass(frozen=True)
class Entity:
    """Entity of a home, such as `light.hall`.

    Args:
        name: Entity id.
        device_class: Class that its owner or its integration gave it; may be empty.
        device: Id of its device; may be empty.
        area: Id of its area, or of its device's; may be empty.
        labels: Ids of the labels of it, its device and its area.
        unique: Id that its integration gave it.
        listed: True if it is neither disabled nor hidden, nor for settings or diagnosis.
        enabled: True if it is not disabled.
    """

    name: str
    device_class: str = ""
    device: str = ""
    area: str = ""
    labels: frozenset[str] = frozenset()
    unique: str = ""
    listed: bool = True
    enabled: bool = True


@dataclass(frozen=True)
class HomeRegistry:
    """Registries of a home.

    Args:
        entities: Entity id -> entity.
        by_id: Id in the registry -> entity.
        devices: Id -> name of a device.
        areas: Id -> name and id of the floor of an area.
        floors: Id -> name of a floor.
        classes: Entity id -> device class by the configuration.
    """

    entities: Mapping[str, Entity] = field(default_factory=dict)
    by_id: Mapping[str, Entity] = field(default_factory=dict)
    devices: Mapping[str, str] = field(default_factory=dict)
    areas: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    floors: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)

    def find(self, name: str) -> Entity:
        """Return the entity of an entity id or a registry id; one without a registry entry has no class."""
        return self.entities.get(name) or self.by_id.get(name) or Entity(name)

    def type_of(self, entity: str) -> str | None:
        """Return the type of an entity; None if its domain is not in the table."""
        return device_type(entity, self.classes.get(entity) or self.find(entity).device_class)

    @property
    def lacking(self) -> str:
        """Reason why a device or area has no entities."""
        return NO_REGISTRY if self.entities else NO_STORAGE

    def targets(self, key: str, name: str) -> list[str]:
        """Return the entities of a device, an area, a floor or a label, by the key of a target."""
        of_key: dict[str, Callable[[Entity], bool]] = {
            "device_id": lambda e: e.device == name,
            "area_id": lambda e: e.area == name,
            "floor_id": lambda e: self.areas.get(e.area, ("", ""))[1] == name,
            "label_id": lambda e: name in e.labels,
        }
        return [e.name for e in self.entities.values() if e.listed and of_key[key](e)]

    def area_of(self, entity: str) -> str:
        """Return the area of an entity, behind its floor if that is known; empty if it has none."""
        area = self.find(entity).area
        name, floor = self.areas.get(area, (area, ""))
        return f"{self.floors[floor]}{FLOOR_MARK}{name}" if floor in self.floors else name


def read_registry(folder: Path, classes: Mapping[str, str] | None = None) -> HomeRegistry:
    """Return the registry of a home; an empty one if there is none.

    Raises:
        DataError: A file is no registry.
    """
    floors = {_text(one, "floor_id"): _text(one, "name") for one in _list(folder / FLOORS, "floors")}
    areas = {_text(one, "id"): one for one in _list(folder / AREAS, "areas")}
    devices = {_text(one, "id"): one for one in _list(folder / DEVICES, "devices")}
    entities, by_id = dict[str, Entity](), dict[str, Entity]()
    for one in _list(folder / ENTITIES, "entities"):
        device = devices.get(_text(one, "device_id"), {})
        area = _text(one, "area_id") or _text(device, "area_id")
        entity = Entity(
            _text(one, "entity_id"),
            _text(one, "device_class") or _text(one, "original_device_class"),
            _text(one, "device_id"),
            area,
            frozenset(name for holder in (one, device, areas.get(area, {})) for name in _texts(holder, "labels")),
            _text(one, "unique_id"),
            not any(_text(one, key) for key in ("disabled_by", "hidden_by", "entity_category")),
            not _text(one, "disabled_by"),
        )
        if entity.name:
            entities[entity.name] = by_id[_text(one, "id")] = entity
    return HomeRegistry(
        entities,
        by_id,
        {key: _text(one, "name_by_user") or _text(one, "name") for key, one in devices.items()},
        {key: (_text(one, "name") or key, _text(one, "floor_id")) for key, one in areas.items()},
        floors,
        classes or {},
    )


def _list(path: Path, key: str) -> Sequence[Mapping[str, Any]]:
    if not path.is_file():
        return []
    with reading(path), path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise DataError(f"longer than {MOST_BYTES:,} bytes; is this a registry of Home Assistant?", path)
    try:
        found = json.loads(data)["data"][key]
    except (ValueError, KeyError, TypeError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise DataError(f"not a registry with a list data.{key}; copy it again, or leave it out", path)
    return found


def _text(one: Mapping[str, Any], key: str) -> str:
    value = one.get(key)
    return value if isinstance(value, str) else ""


def _texts(one: Mapping[str, Any], key: str) -> list[str]:
    value = one.get(key)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
