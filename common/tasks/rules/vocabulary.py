"""Vocabulary of the rules task."""

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from common.arrays import Flags, Ints
from common.tasks.vocabulary import Vocabulary, check_names

Edges = Ints
"""Rules of one home, shape (E, 3): trigger node, action node, relation."""


SEPARATOR = " → "
"""Text between the two parts of a relation's name."""

OPPOSITES = (
    ("turn on", "turn off"),
    ("open", "close"),
    ("lock", "unlock"),
    ("arm", "disarm"),
    ("start", "stop"),
)
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

    def possible(self) -> tuple[Flags, Flags]:
        """Return two F × R masks: device types that can trigger a relation, and that can execute it."""
        parts = list(zip(*map(relation_parts, self.relations), strict=True)) or [(), ()]
        return _ability_mask(self.entities, self.notices, parts[0]), _ability_mask(self.entities, self.does, parts[1])

    @classmethod
    def noun(cls) -> str:
        """Return the noun of the names, for messages."""
        return "device types and relations"


def _ability_mask(types: Sequence[str], abilities: Mapping[str, Sequence[str]], parts: Sequence[str]) -> Flags:
    if not abilities:
        return np.ones((len(types), len(parts)), bool)
    return np.array([[part in abilities.get(name, ()) for part in parts] for name in types], bool)
