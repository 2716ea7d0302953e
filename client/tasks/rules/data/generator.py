"""Embedded demo homes like the paper's smart-home data: 11 device types, 163 trigger-action pairs.

Rules per home are heavy-tailed around 2.65. Homes are of different kinds (`demo_words.HOUSEHOLDS`), so clients' tastes
differ; a home's kind shows in its devices and its other rules, and rules come with their opposites, so that there is
something to learn from a home's graph.
"""

from functools import cache
from itertools import product
from typing import Any

import numpy as np

from client.tasks.rules.data import demo_households
from client.tasks.rules.data.homes import Device, Home, as_edges
from common.arrays import Floats
from common.tasks.rules.demo import ACTIONS, PAIRS, STATES, demo_catalogue
from common.tasks.rules.vocabulary import relation_parts

Rule = tuple[int, int, int]

OPPOSITE_CHANCE = 0.5
LARGEST = 40
"""Most rules a demo home has."""


def demo_homes(start: int, stop: int, seed: int, specialisation: float = 1.0) -> tuple[Home, ...]:
    """Generate homes number start … stop−1; home k depends on (seed, k) only.

    Args:
        start: Number of the first home.
        stop: Number after that of the last home.
        seed: Seed of all homes.
        specialisation: Exponent of the preferences of a household; at 0 households do not differ.
    """
    return tuple(_home(k, np.random.default_rng([seed, k]), specialisation) for k in range(start, stop))


def _home(number: int, rng: np.random.Generator, specialisation: float) -> Home:
    kind = int(
        rng.choice(len(demo_households.HOUSEHOLDS), p=[household.share for household in demo_households.HOUSEHOLDS])
    )
    size = min(LARGEST, 1 + int(rng.lognormal(0.2, 1.1)))
    devices = _devices(kind, 2 + int(rng.poisson(0.5 + 1.2 * np.sqrt(size))), rng, specialisation)
    return Home(f"home-{number:05d}", devices, as_edges(_rules(_taste(specialisation)[kind], devices, size, rng)))


def _devices(kind: int, count: int, rng: np.random.Generator, specialisation: float) -> tuple[Device, ...]:
    types = demo_catalogue().entities
    owns = np.array([demo_households.HOUSEHOLDS[kind].owns.get(name, 1.0) for name in types]) ** specialisation
    names: set[tuple[str, int]] = set()
    for entity in rng.choice(len(types), size=count, p=owns / owns.sum()).tolist():
        names.add((_name(types[entity], names, rng), entity))
    return tuple(Device(name, entity) for name, entity in sorted(names))


def _name(kind: str, taken: set[tuple[str, int]], rng: np.random.Generator) -> str:
    places = demo_households.PLACES[kind]
    used = {name for name, _ in taken}
    nouns = [f"{place} {kind.lower()}" for place in places] + [f"{kind} {k}" for k in range(2, len(taken) + 3)]
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
        rule = (u, v, int(rng.choice(len(likes), p=likes / likes.sum())))
        opposite = _opposites().get(rule[2])
        rules.add(rule)
        if opposite is not None and likes[opposite] and len(rules) < size and rng.random() < OPPOSITE_CHANCE:
            rules.add((u, v, opposite))
    return rules


def _nearness(devices: tuple[Device, ...]) -> Floats:
    """Return weights of pairs of devices: those in the same place are likelier, a device and itself never."""
    places = [device.name.split()[0] for device in devices]
    near = np.array([[4.0 if a == b else 1.0 for b in places] for a in places])
    np.fill_diagonal(near, 0.0)
    return near


@cache
def _taste(specialisation: float) -> Floats:
    """Return weights of relations from trigger to action types, (kinds, F, F, R); 0 is senseless."""
    catalogue = demo_catalogue()
    taste = np.zeros((len(demo_households.HOUSEHOLDS), *[len(catalogue.entities)] * 2, len(catalogue.relations)))
    for r, relation in enumerate(catalogue.relations):
        state, action = relation_parts(relation)
        popularity = 1.0 / (1 + PAIRS[state].index(action))
        for k, household in enumerate(demo_households.HOUSEHOLDS):
            likes = [household.likes.get(name, 1.0) ** specialisation for name in (state, action)]
            taste[k, :, :, r] = popularity * likes[0] * likes[1]
        for (u, trigger), (v, target) in product(enumerate(catalogue.entities), repeat=2):
            if state not in STATES[trigger] or action not in ACTIONS.get(target, ()):
                taste[:, u, v, r] = 0
    return taste


@cache
def _opposites() -> dict[int, int]:
    """Return relation -> relation of the opposite state and action, if both are in the catalogue."""
    index: dict[Any, int] = {relation_parts(name): r for r, name in enumerate(demo_catalogue().relations)}
    flipped = demo_households.COUNTERPARTS | {b: a for a, b in demo_households.COUNTERPARTS.items()}
    pairs = {r: (flipped.get(state), flipped.get(action)) for (state, action), r in index.items()}
    return {r: index[pair] for r, pair in pairs.items() if pair in index}
