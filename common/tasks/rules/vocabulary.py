"""Vocabulary of the rules task, and that of the generated demo homes."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from common.arrays import Flags, Ints
from common.tasks.vocabulary import Entry, Vocabulary, check_names

Edges = Ints
"""Rules of one home, shape (E, 3): trigger node, action node, relation."""


SEPARATOR = " → "
"""Text between the two parts of a relation's name."""

OPPOSITES = (("turn on", "turn off"), ("open", "close"), ("lock", "unlock"), ("arm", "disarm"), ("start", "stop"))
"""Actions that contradict each other; see `RuleCatalogue.opposites`."""


def relation_name(trigger_state: str, action: str) -> str:
    """Return the name of a relation: `opens`, `turn on` -> `opens → turn on`.

    Raises:
        ValueError: A part is empty or contains the separator.
    """
    for part in (trigger_state, action):
        if not part or SEPARATOR in part:
            raise ValueError(f"'{part}' cannot be part of a relation's name: it is empty or contains '{SEPARATOR}'")
    return f"{trigger_state}{SEPARATOR}{action}"


def relation_parts(relation: str) -> tuple[str, str]:
    """Return trigger state and action of a relation's name; inverse of `relation_name`.

    Raises:
        ValueError: The text is not a relation's name.
    """
    trigger_state, separator, action = relation.partition(SEPARATOR)
    if relation != (relation_name(trigger_state, action) if separator else None):
        raise ValueError(f"'{relation}' is not of the form 'trigger state{SEPARATOR}action'")
    return trigger_state, action


class RuleCatalogue(Vocabulary):
    """Vocabulary of the rules task; the position of a name is its index in the model."""

    entities: tuple[str, ...]
    """Names of the F device types, the node features."""

    relations: tuple[str, ...]
    """Names of the R trigger-action pairs by `relation_name`; the scores of an ordered pair of nodes."""

    notices: dict[str, tuple[str, ...]] = Field(default={}, exclude_if=lambda states: not states)
    """Device type -> trigger states that it can report, the first part of a relation.

    A missing type reports none. Empty: unknown, every state is possible.
    """

    does: dict[str, tuple[str, ...]] = Field(default={}, exclude_if=lambda actions: not actions)
    """Device type -> actions that it supports, the second part of a relation; otherwise like `notices`."""

    opposites: tuple[tuple[str, str], ...] = Field(default=OPPOSITES, exclude_if=lambda pairs: pairs == OPPOSITES)
    """Pairs of actions that contradict each other, whole or by their words, without regard to case.

    `start`, `stop` also makes opposites of `start recording on` and `stop recording on`.
    """

    @model_validator(mode="after")
    def _names_are_usable(self) -> Self:
        check_names("a device type", self.entities)
        check_names("a relation", self.relations)
        for relation in self.relations:
            relation_parts(relation)
        if unknown := sorted({*self.notices, *self.does} - set(self.entities)):
            raise ValueError(f"notices or does names '{unknown[0]}', which is not in entities")
        if not all(any(character.isalnum() for character in name) for pair in self.opposites for name in pair):
            raise ValueError("opposites names an action without a letter")
        return self

    def __hash__(self) -> int:
        return hash((self.entities, self.relations))

    def _extend(self, field: str, values: Any, other: Self) -> Any:
        """Return the names of both, or the abilities of types; without those of some type, all are unknown."""
        if field not in ("notices", "does"):
            return super()._extend(field, values, other)
        added = getattr(other, field)
        both = {name: tuple(dict.fromkeys((*values.get(name, ()), *added.get(name, ())))) for name in (*values, *added)}
        unknown = (lists.entities for lists, abilities in ((self, values), (other, added)) if not abilities)
        return both if all(name in both for names in unknown for name in names) else {}

    def entries(self) -> list[Entry]:
        """Return the names one by one, as in `Vocabulary`; opposites are no names of the data."""
        return [entry for entry in super().entries() if entry[0] != "opposites"]

    @classmethod
    def from_entries(cls, entries: Collection[Entry]) -> Self:
        """Return the vocabulary of these entries, without abilities of device types that are not among them."""
        types = {entry[1] for entry in entries if entry[0] == "entities"}
        return super().from_entries([entry for entry in entries if len(entry) == 2 or entry[1] in types])

    def possible(self) -> tuple[Flags, Flags]:
        """Return two F × R masks: device types that can trigger a relation, and that can execute it."""
        pairs = list(zip(*map(relation_parts, self.relations), strict=True)) or [(), ()]
        return _ability_mask(self.entities, self.notices, pairs[0]), _ability_mask(self.entities, self.does, pairs[1])

    @classmethod
    def noun(cls) -> str:
        """Return the noun of the names, for messages."""
        return "device types and relations"


def _ability_mask(types: Sequence[str], abilities: Mapping[str, Sequence[str]], wanted: Sequence[str]) -> Flags:
    if not abilities:
        return np.ones((len(types), len(wanted)), bool)
    return np.array([[part in abilities.get(name, ()) for part in wanted] for name in types], bool)


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
