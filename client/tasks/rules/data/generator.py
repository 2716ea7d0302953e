"""Embedded demo homes like the paper's smart-home data: 11 device types, 163 trigger-action pairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from client.tasks.rules.data.homes import Device, Home, as_edges
from client.tasks.rules.lists import goes_straight, shared_abilities
from client.tasks.rules.refusals import reason_of
from common.arrays import Floats
from common.tasks.rules.vocabulary import ACTIONS, PAIRS, STATES, demo_catalogue, relation_parts

PLACES: dict[str, tuple[str, ...]] = {
    "Contact sensor": ("Front door", "Back door", "Garage door", "Bedroom window", "Kitchen window", "Fridge"),
    "Motion sensor": ("Hall", "Stairs", "Garage", "Bathroom", "Kitchen", "Landing"),
    "Camera": ("Porch", "Drive", "Garden", "Living room", "Nursery", "Garage"),
    "Door lock": ("Front", "Back", "Garage", "Patio"),
    "Light": ("Hall", "Porch", "Living room", "Kitchen", "Bedroom", "Bathroom", "Stairs", "Garage", "Study"),
    "Smart plug": ("Coffee machine", "Fan", "Heater", "Television", "Bedside lamp", "Christmas tree"),
    "Light strip": ("Kitchen", "Living room", "Desk", "Stairs"),
    "Wall switch": ("Hall", "Bedroom", "Living room", "Garage", "Landing"),
    "Robot vacuum": ("Upstairs", "Downstairs"),
    "Thermostat": ("Living room", "Bedroom", "Upstairs"),
    "Leak sensor": ("Washing machine", "Bathroom", "Cellar", "Dishwasher"),
}
"""Places of a device of each type, likeliest first; further devices are numbered."""


@dataclass(frozen=True)
class Household:
    """A kind of household; what is not named has weight 1."""

    share: float
    """Share of all homes."""
    owns: Mapping[str, float]
    """Weight of a device type when buying."""
    likes: Mapping[str, float]
    """Weight of a state or action when writing a rule."""


HOUSEHOLDS = (
    Household(
        0.3,
        {"Contact sensor": 5, "Camera": 6, "Door lock": 4, "Motion sensor": 3},
        {"start recording on": 9, "take a snapshot with": 6, "sound the siren of": 6, "lock": 6, "flash": 3}
        | {"stays open": 4, "detects a person": 5, "stays unlocked": 5, "detects a sound": 3, "turn off": 0.3},
    ),
    Household(
        0.3,
        {"Light": 8, "Light strip": 4, "Wall switch": 4, "Motion sensor": 5, "Contact sensor": 2},
        {"turn on": 5, "turn off": 5, "dim": 4, "brighten": 4, "toggle": 4, "play a colour scene on": 4, "flash": 0.2}
        | {"detects motion": 3, "sees no motion": 3, "is pressed twice": 4, "start recording on": 0.1},
    ),
    Household(
        0.2,
        {"Thermostat": 6, "Smart plug": 6, "Contact sensor": 3, "Door lock": 2},
        {"turn up": 8, "turn down": 8, "set away mode on": 8, "set home mode on": 8, "gets too warm": 6}
        | {"gets too cold": 6, "switches to away": 5, "switches to home": 5, "flash": 0.2, "start recording on": 0.2},
    ),
    Household(
        0.1,
        {"Robot vacuum": 8, "Door lock": 4, "Smart plug": 3, "Light": 2},
        {"start cleaning with": 9, "pause": 9, "dock": 9, "starts cleaning": 4, "finishes cleaning": 4, "locks": 4},
    ),
    Household(
        0.1,
        {"Leak sensor": 8, "Camera": 3, "Smart plug": 4, "Light strip": 2, "Light": 3},
        {"detects a leak": 9, "hears a smoke alarm": 6, "gets stuck": 3, "sound the siren of": 4}
        | {"flash": 6, "unlock": 4},
    ),
)
"""Guards, lighters, savers, tidiers and carers."""


Rule = tuple[int, int, int]

OPPOSITE_CHANCE, ODD = 0.7, 0.04
"""Share of rules with their counterpart; of rules with any state and action of the devices."""

NEAR, SENSELESS, SHARPNESS = 60.0, 0.03, 1.5
"""Weight of devices in one place; of rules against sense or refused; exponent of preferences."""

LARGEST = 40
"""Most rules a demo home has."""


def demo_homes(start: int, stop: int, seed: int, specialisation: float = 1.0) -> tuple[Home, ...]:
    """Generate homes number start … stop−1; home k depends on (seed, k) only.

    `specialisation` is an exponent of the preferences of a household; at 0 households do not differ.
    """
    return tuple(_home(k, np.random.default_rng([seed, k]), specialisation) for k in range(start, stop))


def _home(number: int, rng: np.random.Generator, specialisation: float) -> Home:
    kind = int(rng.choice(len(HOUSEHOLDS), p=[household.share for household in HOUSEHOLDS]))
    size = min(LARGEST, 1 + int(rng.lognormal(0.2, 1.1)))
    devices = _devices(kind, 5 + int(rng.poisson(0.5 + 1.2 * np.sqrt(size))), rng, specialisation)
    return Home(f"home-{number:05d}", devices, as_edges(_rules(_taste(specialisation)[kind], devices, size, rng)))


def _devices(kind: int, count: int, rng: np.random.Generator, specialisation: float) -> tuple[Device, ...]:
    types = demo_catalogue().entities
    owns = np.array([HOUSEHOLDS[kind].owns.get(name, 1.0) for name in types]) ** specialisation
    names: set[tuple[str, int]] = set()
    for entity in rng.choice(len(types), size=count, p=owns / owns.sum()).tolist():
        names.add((_name(types[entity], names, rng), entity))
    return tuple(Device(name, entity) for name, entity in sorted(names))


def _name(kind: str, named: set[tuple[str, int]], rng: np.random.Generator) -> str:
    places = PLACES[kind]
    used = {name for name, _ in named}
    nouns = [f"{room} {kind.lower()}" for room in places] + [f"{kind} {k}" for k in range(2, len(named) + 3)]
    free = [noun for noun in nouns if noun not in used]
    return free[min(int(rng.geometric(0.5)), len(free)) - 1]


def _rules(taste: Floats, devices: tuple[Device, ...], size: int, rng: np.random.Generator) -> set[Rule]:
    """Draw rules by taste until there are `size`, or none are left that are new."""
    entity = np.array([device.entity for device in devices])
    pairs = taste.sum(axis=2)[np.ix_(entity, entity)] * _nearness(devices)
    rules: set[Rule] = set()
    for _ in range(4 * size if pairs.any() else 0):
        if len(rules) >= size:
            break
        u, v = divmod(int(rng.choice(pairs.size, p=pairs.ravel() / pairs.sum())), len(devices))
        likes = taste[entity[u], entity[v]]
        likes = np.sign(likes) if rng.random() < ODD else likes
        rule = (u, v, int(rng.choice(len(likes), p=likes / likes.sum())))
        rules.add(rule)
        undoing = shared_abilities(demo_catalogue()).counterparts(rule[2])
        if likes[undoing].any() and len(rules) < size and rng.random() < OPPOSITE_CHANCE:
            rules.add((u, v, int(undoing[likes[undoing].argmax()])))
    return rules


def _nearness(devices: tuple[Device, ...]) -> Floats:
    """Return weights of pairs of devices: those in the same place are likelier, a device and itself never."""
    places = [device.name.split()[0] for device in devices]
    near = np.array([[NEAR if a == b else 1.0 for b in places] for a in places])
    np.fill_diagonal(near, 0.0)
    return near


@cache
def _taste(specialisation: float) -> Floats:
    """Return weights of relations from trigger to action types, (kinds, F, F, R); 0 is senseless."""
    catalogue = demo_catalogue()
    taste = np.zeros((len(HOUSEHOLDS), *[len(catalogue.entities)] * 2, len(catalogue.relations)))
    for r, relation in enumerate(catalogue.relations):
        state, action = relation_parts(relation)
        popularity = (1 + PAIRS[state].index(action)) ** -SHARPNESS
        for k, household in enumerate(HOUSEHOLDS):
            likes = [household.likes.get(name, 1.0) ** (SHARPNESS * specialisation) for name in (state, action)]
            taste[k, :, :, r] = popularity * likes[0] * likes[1]
        for (u, trigger), (v, target) in product(enumerate(catalogue.entities), repeat=2):
            if state not in STATES[trigger] or action not in ACTIONS.get(target, ()):
                taste[:, u, v, r] = 0
            elif goes_straight(state, action) is False or reason_of(trigger, state, action, target):
                taste[:, u, v, r] *= SENSELESS
    return taste
