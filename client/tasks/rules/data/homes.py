"""A home as a graph: nodes are devices, edges are rules."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from client.data.dataset import Dataset
from common.tasks.rules.vocabulary import Edges, RuleCatalogue, relation_parts


@dataclass(frozen=True)
class Device:
    """One device of a home."""

    name: str
    """Its id in the data, unique among the home's devices of one type."""
    entity: int
    """Its type, an index into `Catalogue.entities`; the node's one-hot feature."""


@dataclass(frozen=True, eq=False)
class Home:
    """One user's devices and rules."""

    name: str
    devices: tuple[Device, ...]
    """The nodes, ordered by name, then type."""
    rules: Edges
    """Distinct rules in ascending order, so that a home does not depend on the order of its file."""


Homes = Dataset[RuleCatalogue, Home]


def as_edges(rules: Iterable[tuple[int, int, int]]) -> Edges:
    """Distinct (trigger node, action node, relation), ascending, as an (E, 3) array."""
    return np.array(sorted(set(rules)), dtype=np.int64).reshape(-1, 3)


def describe(home: Home, rule: tuple[int, int, int], catalogue: RuleCatalogue) -> str:
    """Return a rule as a sentence: `when Front door contact sensor opens, turn on Hall light`."""
    trigger, action, relation = rule
    state, verb = relation_parts(catalogue.relations[relation])
    sentence = (
        f"when {_label(home.devices[trigger], catalogue)} {state}, {verb} {_label(home.devices[action], catalogue)}"
    )
    return sentence.replace("_", " ")


def _label(device: Device, catalogue: RuleCatalogue) -> str:
    """Return a device's name if that contains its type, else type and name."""
    kind = catalogue.entities[device.entity]
    return device.name if kind.casefold() in device.name.casefold() else f"{kind} {device.name}"
