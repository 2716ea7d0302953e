"""Places of devices in the embedded demo homes, and preferences of their households; invented."""

from collections.abc import Mapping
from dataclasses import dataclass

COUNTERPARTS = {
    "opens": "closes",
    "detects motion": "sees no motion",
    "unlocks": "locks",
    "turns on": "turns off",
    "starts cleaning": "finishes cleaning",
    "gets too warm": "gets too cold",
    "switches to home": "switches to away",
    "turn on": "turn off",
    "brighten": "dim",
    "unlock": "lock",
    "turn up": "turn down",
    "set home mode on": "set away mode on",
    "pause": "start cleaning with",
}
"""States and actions with their opposites, since rules often come in such pairs."""

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
