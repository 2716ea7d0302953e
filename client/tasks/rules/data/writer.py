"""Homes as a table."""

from collections.abc import Iterator
from pathlib import Path

from client.data.tables.writer import write_private_csv
from client.tasks.rules.data.homes import Home, Homes
from client.tasks.rules.schema import COLUMNS
from common.tasks.rules.vocabulary import RuleCatalogue, relation_parts


def write_homes(path: Path, dataset: Homes) -> None:
    """Write homes as CSV, readable by the owner only; `read_homes` with the vocabulary inverts it."""
    write_private_csv(path, COLUMNS, (row for home in dataset.units for row in _rows(home, dataset.vocabulary)))


def _rows(home: Home, catalogue: RuleCatalogue) -> Iterator[tuple[str, ...]]:
    names = [(catalogue.entities[device.entity], device.name) for device in home.devices]
    for trigger, action, relation in home.rules.tolist():
        yield (home.name, *names[trigger], *relation_parts(catalogue.relations[relation]), *names[action])
    for idle in sorted(set(range(len(names))) - set(home.rules[:, :2].ravel().tolist())):
        yield (home.name, *names[idle], "", "", "", "")
