"""Public table of device types, states and actions; nothing else of a home enters a vocabulary."""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

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
    return next((value for value, own in _states(kind).items() if own == name), None)


def action_name(entity: str, service: str) -> str | None:
    """Return the name of a service called on an entity; None if it is not in the table."""
    return _services(entity).get(service)


def service_name(entity: str, action: str) -> str | None:
    """Return the service that an action stands for; None if it is none, or needs a value besides."""
    if action in table()["incomplete"]:
        return None
    return next((service for service, own in _services(entity).items() if own == action), None)


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
