"""Homes with areas, devices of Home Assistant and 14 kinds of habits; whole habits are held out."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from client.tasks.rules.data.homes import Device, Examples, Home, Homes, SplitHome, as_edges
from common.tasks.rules.vocabulary import RuleCatalogue, relation_name

Thing = tuple[str, str, str]
"""Entity id, type and area of a device."""

Part = tuple[str, str, str, str]
"""Types and names of a rule: trigger type, its state, action, action type."""

ROOMS: dict[str, dict[str, float]] = {
    "Hall": {
        "binary_sensor.motion": 0.8,
        "light.ceiling": 1,
        "button.wall": 0.5,
        "climate.radiator": 0.4,
        "siren.": 0.4,
    },
    "Kitchen": {"binary_sensor.motion": 0.6, "light.ceiling": 1, "binary_sensor.leak": 0.7, "binary_sensor.smoke": 0.7}
    | {"binary_sensor.window": 0.6, "climate.radiator": 0.6, "switch.coffee_machine": 0.6, "switch.oven": 0.3}
    | {"cover.blind": 0.5, "button.wall": 0.4},
    "Living room": {"binary_sensor.motion": 0.4, "light.ceiling": 1, "light.floor_lamp": 0.6, "media_player.tv": 0.9}
    | {
        "cover.blind": 0.8,
        "binary_sensor.window": 0.6,
        "climate.radiator": 0.9,
        "switch.heater": 0.2,
        "button.wall": 0.6,
    },
    "Bedroom": {"binary_sensor.motion": 0.3, "light.ceiling": 1, "cover.blind": 0.8, "binary_sensor.window": 0.7}
    | {"climate.radiator": 0.8, "button.wall": 0.6, "binary_sensor.smoke": 0.5},
    "Kids room": {"light.ceiling": 1, "cover.blind": 0.7, "binary_sensor.window": 0.6, "climate.radiator": 0.7}
    | {"button.wall": 0.5},
    "Bathroom": {"binary_sensor.motion": 0.8, "light.ceiling": 1, "sensor.humidity": 0.8, "fan.exhaust": 0.8}
    | {"binary_sensor.leak": 0.6, "binary_sensor.window": 0.5, "climate.radiator": 0.7},
    "Office": {"binary_sensor.motion": 0.6, "light.ceiling": 1, "cover.blind": 0.6, "binary_sensor.window": 0.5}
    | {"climate.radiator": 0.6, "button.wall": 0.4},
    "Cellar": {"binary_sensor.motion": 0.7, "light.ceiling": 1, "sensor.humidity": 0.5, "fan.exhaust": 0.4}
    | {"binary_sensor.leak": 0.8, "valve.main_water": 0.6},
    "Garage": {"binary_sensor.motion": 0.5, "light.ceiling": 1, "cover.garage_door": 0.8},
    "Porch": {"binary_sensor.motion": 0.6, "light.wall": 1, "binary_sensor.front_door": 0.9, "lock.front_door": 0.7}
    | {"camera.": 0.5},
}
"""Area -> the devices that it may have, with their probability; areas of each home are drawn."""

WHOLE = {"person.sam": 1, "sun.sun": 1, "clock.clock": 1, "vacuum.robot": 0.6, "alarm_control_panel.house": 0.5}
"""Devices of the whole home."""

TYPES = {
    "motion": "Motion sensor",
    "leak": "Leak sensor",
    "smoke": "Smoke alarm",
    "window": "Window sensor",
    "front_door": "Door sensor",
    "humidity": "Humidity sensor",
    "garage_door": "Garage door",
    "light": "Light",
    "button": "Button",
    "climate": "Thermostat",
    "siren": "Siren",
    "switch": "Switch",
    "cover": "Blind",
    "media_player": "Media player",
    "fan": "Fan",
    "valve": "Valve",
    "lock": "Door lock",
    "camera": "Camera",
    "person": "Person",
    "sun": "Sun",
    "clock": "Clock",
    "vacuum": "Robot vacuum",
    "alarm_control_panel": "Alarm panel",
}
"""End of an entity's name, or its domain -> type of the device, as in the product's public table."""

Habit = tuple[float, str, tuple[Part, ...]]
"""Share of homes with the habit, words that the devices' names have, and its rules.

Words: `room`, both devices are in one; otherwise a part of the entity id of trigger or action, such as `front_door`.
"""

LIGHT, HEAT, BLIND, AWAY = "Light", "Thermostat", "Blind", "Person"
HABITS: dict[str, Habit] = {
    "motion light": (
        *(0.85, "room"),
        (("Motion sensor", "detects motion", "turn on", LIGHT), ("Motion sensor", "sees no motion", "turn off", LIGHT)),
    ),
    "button light": (0.8, "room", (("Button", "is pressed", "toggle", LIGHT),)),
    "window heating": (
        *(0.75, "room window"),
        (("Window sensor", "opens", "turn off", HEAT), ("Window sensor", "closes", "turn on", HEAT)),
    ),
    "humid fan": (
        *(0.8, "room"),
        (
            ("Humidity sensor", "rises above a value", "turn on", "Fan"),
            ("Humidity sensor", "falls below a value", "turn off", "Fan"),
        ),
    ),
    "blinds by the sun": (0.75, "", (("Sun", "sets", "close", BLIND), ("Sun", "rises", "open", BLIND))),
    "leak valve": (0.85, "", (("Leak sensor", "detects a leak", "close", "Valve"),)),
    "leak siren": (0.5, "", (("Leak sensor", "detects a leak", "turn on", "Siren"),)),
    "door light": (0.7, "front_door wall", (("Door sensor", "opens", "turn on", LIGHT),)),
    "lights off when away": (0.7, "", ((AWAY, "leaves home", "turn off", LIGHT),)),
    "lock when away": (0.8, "", ((AWAY, "leaves home", "lock", "Door lock"),)),
    "vacuum when away": (
        *(0.75, ""),
        ((AWAY, "leaves home", "start", "Robot vacuum"), (AWAY, "comes home", "dock", "Robot vacuum")),
    ),
    "smoke escape": (
        *(0.6, ""),
        (("Smoke alarm", "detects smoke", "open", BLIND), ("Smoke alarm", "detects smoke", "turn on", "Siren")),
    ),
    "coffee": (0.6, "coffee", (("Clock", "reaches a time", "turn on", "Switch"),)),
    "porch light": (0.75, "wall", (("Sun", "sets", "turn on", LIGHT), ("Sun", "rises", "turn off", LIGHT))),
}
"""Name -> habit; 14 kinds."""

ODD: tuple[Part, ...] = (
    *((kind, "opens", "turn on", HEAT) for kind in ("Door sensor", "Window sensor")),
    *((kind, "opens", "close", "Valve") for kind in ("Door sensor", "Window sensor")),
    *((kind, "opens", "turn on", LIGHT) for kind in ("Door sensor", "Window sensor")),
    ("Motion sensor", "detects motion", "turn on", HEAT),
    ("Motion sensor", "detects motion", "turn on", "Switch"),
    ("Motion sensor", "detects motion", "turn on", "Siren"),
    ("Motion sensor", "detects motion", "turn on", "Camera"),
    ("Motion sensor", "detects motion", "turn off", LIGHT),
    ("Leak sensor", "detects a leak", "turn on", LIGHT),
    ("Media player", "starts playing", "turn off", LIGHT),
    ("Media player", "starts playing", "close", BLIND),
    (AWAY, "comes home", "unlock", "Door lock"),
    (AWAY, "comes home", "disarm", "Alarm panel"),
    (AWAY, "comes home", "open", "Garage door"),
    (AWAY, "comes home", "turn on", LIGHT),
    (AWAY, "leaves home", "arm for away", "Alarm panel"),
    ("Clock", "reaches a time", "lock", "Door lock"),
    ("Clock", "reaches a time", "turn on", "Switch"),
)
"""Rules of single homes, between any rooms; some are what their owners should not have."""

ODD_SHARE, ROOM_SHARE, HELD_OUT = 0.2, 0.9, 0.4
"""Odd rules for each habit; share of rooms with a home's habit; share of habits held out."""


@dataclass(frozen=True, eq=False)
class Draft:
    """Home before it has a vocabulary: devices, and the rules of each habit by their positions."""

    things: list[Thing]
    habits: list[list[tuple[int, int, Part]]]
    odd: list[tuple[int, int, Part]]


def generate(homes: int, seed: int) -> tuple[Homes, tuple[SplitHome, ...]]:
    """Return homes, and their split into rules to learn from and rules of held-out habits."""
    drafts = [_draft(np.random.default_rng([seed, k])) for k in range(homes)]
    parts = {p for one in drafts for rules in (*one.habits, one.odd) for *_, p in rules}
    types = {t: k for k, t in enumerate(sorted({*TYPES.values()}))}
    relations = sorted({relation_name(state, action) for _, state, action, _ in parts})
    sides = [{t: tuple(sorted({p[k] for p in parts if p[end] == t})) for t in types} for end, k in ((0, 1), (3, 2))]
    notices, does = ({t: names for t, names in side.items() if names} for side in sides)
    catalogue = RuleCatalogue(entities=tuple(types), relations=tuple(relations), notices=notices, does=does)
    index = {name: k for k, name in enumerate(relations)}
    splits = tuple(_split(k, one, types, index, np.random.default_rng([seed, k, 1])) for k, one in enumerate(drafts))
    return Homes(tuple(one.home for one in splits), catalogue), splits


def _split(
    number: int, draft: Draft, types: dict[str, int], relations: dict[str, int], rng: np.random.Generator
) -> SplitHome:
    def edges(rules: list[tuple[int, int, Part]]) -> list[tuple[int, int, int]]:
        return [(i, j, relations[relation_name(p[1], p[2])]) for i, j, p in rules]

    held = rng.permutation(len(draft.habits))[: round(HELD_OUT * len(draft.habits))].tolist()
    test = as_edges(e for k in held for e in edges(draft.habits[k]))
    learnt = [r for k, rules in enumerate(draft.habits) if k not in held for r in rules]
    train, none = as_edges([*edges(learnt), *edges(draft.odd)]), as_edges([])
    test = as_edges({*map(tuple, test.tolist())} - {*map(tuple, train.tolist())})
    devices = tuple(Device(name, types[kind], area) for name, kind, area in draft.things)
    home = Home(f"home-{number:03d}", devices, train)
    return SplitHome(home, Examples(train, none), Examples(none, none), Examples(test, none))


def _draft(rng: np.random.Generator) -> Draft:
    areas = ["Hall", "Kitchen", "Living room", "Porch"]
    areas += [area for area in ROOMS if area not in areas and rng.random() < 0.6]
    things = sorted(_things(areas, rng))
    habits: list[list[tuple[int, int, Part]]] = []
    for share, words, parts in HABITS.values():
        if rng.random() < share:
            habits += [rules for rules in _instances(things, words, parts) if rng.random() < ROOM_SHARE]
    pairs = [pair for part in ODD for pair in _pairs(things, "", part)]
    chosen = rng.permutation(len(pairs))[: rng.poisson(ODD_SHARE * len(habits))].tolist()
    return Draft(things, habits, [pairs[k] for k in chosen])


def _things(areas: list[str], rng: np.random.Generator) -> Iterator[Thing]:
    for area, devices in {**{area: ROOMS[area] for area in areas}, "": WHOLE}.items():
        for entity, share in devices.items():
            if rng.random() < share:
                domain, _, name = entity.partition(".")
                room = area.lower().replace(" ", "_")
                yield f"{domain}.{'_'.join(filter(None, (room, name)))}", TYPES.get(name) or TYPES[domain], area


def _instances(things: list[Thing], words: str, parts: tuple[Part, ...]) -> Iterator[list[tuple[int, int, Part]]]:
    """Yield the rules of a habit for each two devices."""
    found: dict[tuple[int, int], list[tuple[int, int, Part]]] = {}
    for part in parts:
        for rule in _pairs(things, words, part):
            found.setdefault(rule[:2], []).append(rule)
    yield from found.values()


def _pairs(things: list[Thing], words: str, part: Part) -> Iterator[tuple[int, int, Part]]:
    """Yield the pairs of devices of a rule: of its types, with the words of the habit."""
    is_near, others = "room" in words.split(), [word for word in words.split() if word != "room"]
    for i, (trigger, kind, room) in enumerate(things):
        for j, (action, other, area) in enumerate(things):
            is_typed = i != j and (kind, other) == (part[0], part[3])
            if is_typed and (room == area or not is_near) and all(word in trigger + action for word in others):
                yield i, j, part
