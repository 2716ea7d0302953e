"""Homes of Home Assistant as rows of rules: events of automations, and services called on devices."""

from pathlib import Path

import pyarrow

from client.tasks.rules.data.home_assistant import document as reasons
from client.tasks.rules.data.home_assistant.configuration import (
    MAIN,
    SUFFIXES,
    Configuration,
    TooLargeError,
    automation_files,
    read_configuration,
)
from client.tasks.rules.data.home_assistant.courses import rules_of
from client.tasks.rules.data.home_assistant.document import Block, Tally
from client.tasks.rules.data.home_assistant.registry import ENTITIES, HomeRegistry, domain_of, read_registry, table
from client.tasks.rules.data.home_assistant.triggers import Part, View
from client.tasks.rules.data.homes import COLUMNS
from client.tasks.rules.data.rows import Names, RuleRows, encode_rows
from common.errors import DataError
from common.tasks.rules.vocabulary import relation_name

MOST_RULES, MOST_IDLE = 1_000_000, 60
"""Rules of all homes, and devices of a home that no rule names."""

GENERIC = frozenset({"binary_sensor", "device_tracker", "event", "group", "sensor", "weather", "zone"})
"""Domains of which only entities of a class in the table are devices without a rule of their own."""

Row = tuple[str | None, ...]


def is_home_assistant(path: Path) -> bool:
    """Return True if a path is an automation file, a home's configuration, or a folder of such homes."""
    return bool(homes_of(path))


def homes_of(path: Path) -> list[tuple[str, Path, Path | None]]:
    """Return name and folder of each home, and its file of automations if only that is to be read."""
    if path.is_file():
        folder = path.resolve().parent
        return [(folder.name or "home", folder, path)] if path.suffix.lower() in SUFFIXES else []
    if not path.is_dir():
        return []
    if _is_home(path):
        return [(path.resolve().name or "home", path, None)]
    inside = [folder for folder in sorted(path.iterdir()) if folder.is_dir() and not folder.is_symlink()]
    return [(folder.name, folder, None) for folder in inside if _is_home(folder)]


def read_home_assistant(path: Path) -> tuple[RuleRows, tuple[str, ...]]:
    """Return the rules of all homes of a path, and notes on what was not read.

    Raises:
        DataError: A file is malformed, or there is no device.
    """
    rows, local, tally = list[Row](), dict[Names, str](), Tally()
    for home, folder, file in homes_of(path):
        configuration = read_configuration(folder, path if path.is_dir() else path.parent, file)
        registry, devices = read_registry(folder, configuration.classes), set[str]()
        for (start, end), when in _rules(configuration, registry, tally, MOST_RULES - len(rows)).items():
            rows.append((home, start.kind, start.entity, start.name, end.name, end.kind, end.entity))
            local |= {(home, start.entity, end.entity, relation_name(start.name, end.name)): when} if when else {}
            devices |= {start.entity, end.entity}
            if len(rows) > MOST_RULES:
                raise DataError(f"more than {MOST_RULES:,} rules; give fewer homes", path)
        idle = _idle(registry, devices)
        rows += [(home, kind, name, None, None, None, None) for name, kind in idle]
        named = {name: registry.area_of(name) for name in (*devices, *(name for name, _ in idle))}
        local |= {(home, name): area for name, area in named.items() if area}
    notes = tuple(tally.notes())
    if not rows:
        raise DataError(f"no device in the automations ({'; '.join(notes)})", path)
    columns = (pyarrow.array(column, pyarrow.string()) for column in zip(*rows, strict=True))
    return encode_rows(dict(zip(COLUMNS, columns, strict=True)), local=local), notes


def _is_home(folder: Path) -> bool:
    return bool(automation_files(folder)) or any((folder / name).is_file() for name in (ENTITIES, MAIN))


def _rules(home: Configuration, registry: HomeRegistry, tally: Tally, most: int) -> dict[tuple[Part, Part], str]:
    """Return the rules of a home, each with the circumstances that all its automations ask for, in words.

    Raises:
        DataError: There are more than `most`.
    """
    view, found, ids = View(home, registry, tally), dict[tuple[Part, Part], frozenset[str]](), set[str]()
    for file, item in home.automations:
        tally.begin(file, item)
        identity = str(item.get("id", "")) if isinstance(item, Block) else ""
        try:
            rules = rules_of(item, view) if identity not in ids else {}
        except TooLargeError:
            tally.add(reasons.PRODUCT)
            rules = {}
        tally.end(read=bool(rules), otherwise=reasons.TWICE if identity in ids else reasons.NO_CALL)
        ids |= {identity} - {""}
        found |= {rule: found.get(rule, when) & when for rule, when in rules.items()}
        if len(found) > most:
            raise DataError(f"more than {MOST_RULES:,} rules; give fewer homes", home.files.folder)
    return {rule: " and ".join(sorted(when)) for rule, when in found.items()}


def _idle(registry: HomeRegistry, used: set[str]) -> list[tuple[str, str]]:
    """Return devices of the registry that no rule names: those that can act, and sensors of a class."""
    found = []
    for entity in sorted(registry.entities.values(), key=lambda one: one.name):
        kind, domain = registry.type_of(entity.name), domain_of(entity.name)
        useful = domain not in GENERIC or kind != table()["types"][domain]
        if kind and useful and entity.listed and entity.name not in used:
            found.append((entity.name, kind))
    return found[:MOST_IDLE]
