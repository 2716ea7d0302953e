"""Device types, states and actions of Home Assistant, and its registries in `.storage`.

Only names of the public table enter a vocabulary.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from client.data.tables.files import reading
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
    """Return the type of an entity; None if its domain is not in the table."""
    if entity == CLOCK:
        return "Clock"
    types, domain = table()["types"], domain_of(entity)
    found: str | None = types.get(f"{domain}.{device_class}") or types.get(domain)
    return found


def state_name(kind: str, state: str) -> str | None:
    """Return the name of a state that a type of device enters; None if it is not in the table."""
    return _states(kind).get(state)


def state_value(kind: str, name: str) -> str | None:
    """Return the state of Home Assistant that a name stands for; None if it is none."""
    return next((value for value, name_of_value in _states(kind).items() if name_of_value == name), None)


def action_name(entity: str, service: str) -> str | None:
    """Return the name of a service called on an entity; None if it is not in the table."""
    return _services(entity).get(service)


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
    found: Mapping[str, str] = services.get(domain_of(entity)) or services["*"]
    return found


FILES = Path(".storage") / "core.entity_registry", Path(".storage") / "core.device_registry"
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
        listed: True if it is neither disabled nor hidden.
    """

    name: str
    device_class: str = ""
    device: str = ""
    area: str = ""
    listed: bool = True


@dataclass(frozen=True)
class HomeRegistry:
    """Entities of a home by entity id, and by id in the registry."""

    entities: Mapping[str, Entity] = field(default_factory=dict)
    by_id: Mapping[str, Entity] = field(default_factory=dict)

    def find(self, name: str) -> Entity:
        """Return the entity of an entity id or a registry id; one without a registry entry has no class."""
        return self.entities.get(name) or self.by_id.get(name) or Entity(name)

    def of_device(self, device: str, domain: str) -> list[str]:
        """Return the entities of a domain that belong to a device."""
        return [e.name for e in self.entities.values() if e.device == device and domain_of(e.name) == domain]

    def of_area(self, area: str, domain: str) -> list[str]:
        """Return the entities of a domain that are in an area and are listed."""
        return [e.name for e in self.entities.values() if e.area == area and domain_of(e.name) == domain and e.listed]


def read_registry(folder: Path) -> HomeRegistry:
    """Return the registry of a home; an empty one if there is none.

    Raises:
        DataError: A file is no registry.
    """
    devices = {_text(one, "id"): _text(one, "area_id") for one in _list(folder / FILES[1], "devices")}
    entities, by_id = dict[str, Entity](), dict[str, Entity]()
    for one in _list(folder / FILES[0], "entities"):
        name, device = _text(one, "entity_id"), _text(one, "device_id")
        entity = Entity(
            name,
            _text(one, "device_class") or _text(one, "original_device_class"),
            device,
            _text(one, "area_id") or devices.get(device, ""),
            not (_text(one, "disabled_by") or _text(one, "hidden_by")),
        )
        if name:
            entities[name] = by_id[_text(one, "id")] = entity
    return HomeRegistry(entities, by_id)


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
