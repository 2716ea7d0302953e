"""Home as a graph of devices and rules, and its table with one rule a row."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from client.data.dataset import Dataset
from client.data.tables.files import write_private_csv
from client.data.tables.schema import Column, TableSchema
from common.tasks.rules.vocabulary import SEPARATOR, Edges, RuleCatalogue, relation_parts

USER, TRIGGER, TRIGGER_ID, STATE, VERB, ACTION, ACTION_ID = COLUMNS = (
    "user_id",
    "trigger_device",
    "trigger_device_id",
    "trigger_state",
    "action",
    "action_device",
    "action_device_id",
)

SCHEMA = TableSchema(
    columns=(
        Column(USER, "text", ("user", "home", "homeid")),
        Column(TRIGGER, "text"),
        Column(TRIGGER_ID, "text"),
        Column(STATE, "text", ("triggerstateid",), blank="missing"),
        Column(VERB, "text", ("actionid",), blank="missing"),
        Column(ACTION, "text", blank="missing"),
        Column(ACTION_ID, "text", blank="missing"),
    ),
    unit=USER,
)
"""Columns of rules.

A row without state and action declares one or two devices of the user, who may have no rules."""


ENTITY_ID = re.compile(r"[a-z_]+\.[a-z0-9_]+")
"""Name of a device in Home Assistant, such as `light.hall`."""


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
    event, act = _parts(home, rule, catalogue)
    return f"when {event}, {act}"


def describe_shortly(home: Home, rule: tuple[int, int, int], catalogue: RuleCatalogue) -> str:
    """Return a rule as event and action: `Front door contact sensor opens → turn on Hall light`."""
    return SEPARATOR.join(_parts(home, rule, catalogue))


def _parts(home: Home, rule: tuple[int, int, int], catalogue: RuleCatalogue) -> tuple[str, str]:
    trigger, action, relation = rule
    state, verb = relation_parts(catalogue.relations[relation])
    event, act = (
        f"{_label(home.devices[trigger], catalogue)} {state}",
        f"{verb} {_label(home.devices[action], catalogue)}",
    )
    return event.replace("_", " "), act.replace("_", " ")


def _label(device: Device, catalogue: RuleCatalogue) -> str:
    """Return a device's name if that contains its type, else type and name.

    Of an entity id, the part after the point is the name.
    """
    kind, name = catalogue.entities[device.entity], device.name
    name = name.partition(".")[2] if ENTITY_ID.fullmatch(name) else name
    return name if kind.casefold() in name.casefold() else f"{kind} {name}"


def write_homes(path: Path, dataset: Homes) -> None:
    """Write homes as CSV, readable by the owner only; `read_homes` with the vocabulary inverts it."""
    write_private_csv(path, COLUMNS, (row for home in dataset.units for row in _rows(home, dataset.vocabulary)))


def _rows(home: Home, catalogue: RuleCatalogue) -> Iterator[tuple[str, ...]]:
    names = [(catalogue.entities[device.entity], device.name) for device in home.devices]
    for trigger, action, relation in home.rules.tolist():
        yield (home.name, *names[trigger], *relation_parts(catalogue.relations[relation]), *names[action])
    for idle in sorted(set(range(len(names))) - set(home.rules[:, :2].ravel().tolist())):
        yield (home.name, *names[idle], "", "", "", "")
