"""Vocabulary of the rules task."""

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from common.tasks.vocabulary import Vocabulary, check_names

Edges = NDArray[np.int64]
"""Rules of one home, shape (E, 3): trigger node, action node, relation."""


SEPARATOR = " → "


def relation_name(trigger_state: str, action: str) -> str:
    """Name of a relation: `opens`, `turn on` -> `opens → turn on`.

    Raises:
        ValueError: A part is empty or holds the separator itself, so that the name could not be read back.
    """
    for part in (trigger_state, action):
        if not part or SEPARATOR in part:
            raise ValueError(f"'{part}' cannot be part of a relation's name: empty, or contains '{SEPARATOR}'")
    return f"{trigger_state}{SEPARATOR}{action}"


def relation_parts(relation: str) -> tuple[str, str]:
    """Trigger state and action; inverse of `relation_name`.

    Raises:
        ValueError: Not a relation's name.
    """
    trigger_state, separator, action = relation.partition(SEPARATOR)
    if relation != (relation_name(trigger_state, action) if separator else None):
        raise ValueError(f"'{relation}' is not of the form 'trigger state{SEPARATOR}action'")
    return trigger_state, action


class RuleCatalogue(Vocabulary):
    """The public vocabulary of a federation; a name's place is its index in the model."""

    entities: tuple[str, ...]
    """Device types, the F node features."""

    relations: tuple[str, ...]
    """Trigger-action pairs, the R scores of an ordered pair of nodes, each written by `relation_name`."""

    notices: dict[str, tuple[str, ...]] = Field(default={}, exclude_if=lambda known: not known)
    """What devices of a type can notice, the first part of a relation; a type that is missing notices nothing. Empty where
    that is not known, and then any rule may be recommended."""

    does: dict[str, tuple[str, ...]] = Field(default={}, exclude_if=lambda known: not known)
    """What can be done with devices of a type, the second part; likewise."""

    @model_validator(mode="after")
    def _names_are_usable(self) -> Self:
        check_names("a device type", self.entities)
        check_names("a relation", self.relations)
        for relation in self.relations:
            relation_parts(relation)
        if unknown := sorted({*self.notices, *self.does} - set(self.entities)):
            raise ValueError(f"it says what a '{unknown[0]}' can do, which is none of its device types")
        return self

    def possible(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which device types, F, can be the trigger of which relation, R, and which its action: two times F × R."""
        parts = list(zip(*map(relation_parts, self.relations), strict=True)) or [(), ()]
        return _able(self.entities, self.notices, parts[0]), _able(self.entities, self.does, parts[1])

    @classmethod
    def what(cls) -> str:
        """What the names name."""
        return "device types and relations"


def _able(types: Sequence[str], known: Mapping[str, Sequence[str]], parts: Sequence[str]) -> NDArray[np.bool_]:
    if not known:
        return np.ones((len(types), len(parts)), bool)
    return np.array([[part in known.get(name, ()) for part in parts] for name in types], bool)
