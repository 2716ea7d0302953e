"""Homes as a table."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from client.data.tables.writer import private_csv
from client.tasks.rules.data.homes import Home
from client.tasks.rules.schema import COLUMNS
from common.tasks.rules.vocabulary import RuleCatalogue, relation_parts


def write_homes(path: Path, homes: Iterable[Home], catalogue: RuleCatalogue) -> None:
    """Write homes as CSV, readable by the owner only; `read_homes` with the catalogue inverts it."""
    with private_csv(path) as writer:
        writer.writerow(COLUMNS)
        for home in homes:
            writer.writerows(_lines(home, catalogue))


def _lines(home: Home, catalogue: RuleCatalogue) -> Iterator[tuple[str, ...]]:
    names = [(catalogue.entities[device.entity], device.name) for device in home.devices]
    for trigger, action, relation in home.rules.tolist():
        yield (home.name, *names[trigger], *relation_parts(catalogue.relations[relation]), *names[action])
    for idle in sorted(set(range(len(names))) - set(home.rules[:, :2].ravel().tolist())):
        yield (home.name, *names[idle], "", "", "", "")
