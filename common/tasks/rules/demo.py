"""Vocabulary of the generated demo homes; its shape follows a real vendor's."""

from functools import cache

from common.tasks.rules.vocabulary import RuleCatalogue, relation_name

STATES: dict[str, tuple[str, ...]] = {
    "Contact sensor": ("opens", "closes", "stays open"),
    "Motion sensor": ("detects motion", "sees no motion"),
    "Camera": ("detects motion", "detects a person", "detects a sound", "hears a smoke alarm"),
    "Door lock": ("locks", "unlocks", "stays unlocked"),
    "Light": ("turns on", "turns off"),
    "Smart plug": ("turns on", "turns off"),
    "Light strip": ("turns on", "turns off"),
    "Wall switch": ("turns on", "turns off", "is pressed twice"),
    "Robot vacuum": ("starts cleaning", "finishes cleaning", "gets stuck"),
    "Thermostat": ("gets too warm", "gets too cold", "switches to away", "switches to home"),
    "Leak sensor": ("detects a leak",),
}
"""Device type -> trigger states that it can report; 11 types."""

ACTIONS: dict[str, tuple[str, ...]] = {
    "Camera": ("start recording on", "take a snapshot with", "sound the siren of", "turn on", "turn off"),
    "Door lock": ("lock", "unlock"),
    "Light": ("turn on", "turn off", "dim", "brighten", "toggle", "flash"),
    "Smart plug": ("turn on", "turn off", "toggle"),
    "Light strip": ("turn on", "turn off", "dim", "brighten", "flash", "play a colour scene on"),
    "Wall switch": ("turn on", "turn off", "toggle"),
    "Robot vacuum": ("start cleaning with", "pause", "dock"),
    "Thermostat": ("turn up", "turn down", "set away mode on", "set home mode on"),
}
"""Device type -> actions that it supports; the device's name follows the action."""

_PAIRS = {
    "opens": "turn on, start recording on, take a snapshot with, flash, turn off, brighten, sound the siren of, pause, "
    "turn down, set home mode on, play a colour scene on, toggle",
    "closes": "turn off, lock, turn on, dim, turn up, start recording on, start cleaning with, toggle, "
    "set away mode on",
    "stays open": "flash, sound the siren of, turn down, turn off, set away mode on, take a snapshot with, turn on",
    "detects motion": "turn on, start recording on, brighten, take a snapshot with, flash, sound the siren of, toggle, "
    "play a colour scene on, pause, set home mode on, turn up, turn off",
    "sees no motion": "turn off, dim, set away mode on, lock, turn down, start cleaning with, dock, toggle",
    "detects a person": "turn on, start recording on, take a snapshot with, sound the siren of, flash, lock, brighten, "
    "play a colour scene on, pause",
    "detects a sound": "start recording on, turn on, take a snapshot with, flash, dim, brighten, pause",
    "hears a smoke alarm": "turn on, flash, unlock, turn off, sound the siren of, start recording on, brighten, dock",
    "locks": "turn off, set away mode on, start cleaning with, turn on, dim, turn down, start recording on, lock",
    "unlocks": "turn on, set home mode on, turn off, brighten, unlock, pause, dock, turn up, play a colour scene on, "
    "take a snapshot with, start recording on, toggle",
    "stays unlocked": "lock, flash, take a snapshot with, sound the siren of, turn on",
    "turns on": "turn on, turn off, toggle, brighten, dim, play a colour scene on, turn up, start recording on, "
    "start cleaning with",
    "turns off": "turn off, turn on, dim, lock, toggle, turn down, set away mode on, start cleaning with, dock",
    "is pressed twice": "toggle, turn off, turn on, lock, dim, play a colour scene on, set away mode on, "
    "start cleaning with, dock",
    "starts cleaning": "turn on, turn off, brighten, lock",
    "finishes cleaning": "turn off, turn on, dim, flash",
    "gets stuck": "flash, turn on, take a snapshot with",
    "gets too warm": "turn on, turn down, turn off, flash, dim",
    "gets too cold": "turn on, turn up, turn off, flash",
    "switches to away": "turn off, lock, start cleaning with, turn on, start recording on, dim, set away mode on",
    "switches to home": "turn on, turn off, unlock, dock, brighten, set home mode on, play a colour scene on",
    "detects a leak": "turn off, flash, sound the siren of, turn on, take a snapshot with",
}

PAIRS: dict[str, tuple[str, ...]] = {state: tuple(actions.split(", ")) for state, actions in _PAIRS.items()}
"""Trigger state -> actions, most popular first: 163 trigger-action pairs."""


@cache
def demo_catalogue() -> RuleCatalogue:
    """Return the demo's device types, trigger-action pairs and abilities of each type."""
    pairs = sorted(relation_name(state, action) for state, actions in PAIRS.items() for action in actions)
    return RuleCatalogue(entities=tuple(STATES), relations=tuple(pairs), notices=STATES, does=ACTIONS)
