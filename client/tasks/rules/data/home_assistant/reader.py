"""Homes of Home Assistant as rows of rules."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow

from client.tasks.rules.data.home_assistant import document as reasons
from client.tasks.rules.data.home_assistant.automations import Part, calls, count_conditions, events, first_of
from client.tasks.rules.data.home_assistant.document import Block, Tally, load_yaml
from client.tasks.rules.data.home_assistant.registry import (
    FILES,
    HomeRegistry,
    device_type,
    domain_of,
    read_registry,
    table,
)
from client.tasks.rules.data.homes import COLUMNS
from client.tasks.rules.data.rows import RuleRows, encode_rows
from common.errors import DataError

SUFFIXES = (".yaml", ".yml")
AUTOMATIONS = "automations"
MOST_PRODUCTS, MOST_RULES, MOST_IDLE = 10_000, 1_000_000, 60
"""Rules of an automation, rules of all homes, and devices of a home that no rule names."""

GENERIC = frozenset({"binary_sensor", "device_tracker", "group", "sensor", "weather", "zone"})
"""Domains of which only entities of a class in the table are devices without a rule of their own."""

Row = tuple[str | None, ...]


def is_home_assistant(path: Path) -> bool:
    """Return True if a path is an automation file, a home's configuration, or a folder of such homes."""
    return bool(homes_of(path))


def homes_of(path: Path) -> list[tuple[str, Path, list[Path]]]:
    """Return the name, the folder and the automation files of each home; none if there is none."""
    if path.is_file():
        folder = path.resolve().parent
        return [(folder.name or "home", folder, [path])] if path.suffix.lower() in SUFFIXES else []
    if not path.is_dir():
        return []
    if _is_home(path):
        return [(path.resolve().name or "home", path, _files(path))]
    inside = [folder for folder in sorted(path.iterdir()) if folder.is_dir() and not folder.is_symlink()]
    return [(folder.name, folder, _files(folder)) for folder in inside if _is_home(folder)]


def read_home_assistant(path: Path) -> tuple[RuleRows, tuple[str, ...]]:
    """Return the rules of all homes of a path, and notes on what was not read.

    Raises:
        DataError: A file is malformed, or there is no device.
    """
    rows, tally = list[Row](), Tally()
    for home, folder, files in homes_of(path):
        registry, devices = read_registry(folder), set[str]()
        for part in _rules(files, path if path.is_dir() else path.parent, registry, tally):
            rows.append((home, *part))
            devices |= {str(part[1]), str(part[-1])}
            if len(rows) > MOST_RULES:
                raise DataError(f"more than {MOST_RULES:,} rules; give fewer homes", path)
        rows += [(home, kind, name, None, None, None, None) for name, kind in _idle(registry, devices)]
    notes = tuple(tally.notes())
    if not rows:
        raise DataError(f"no device in the automations ({'; '.join(notes)})", path)
    columns = (pyarrow.array(column, pyarrow.string()) for column in zip(*rows, strict=True))
    return encode_rows(dict(zip(COLUMNS, columns, strict=True))), notes


def _is_home(folder: Path) -> bool:
    return bool(_files(folder)) or (folder / FILES[0]).is_file()


def _files(folder: Path) -> list[Path]:
    """Return the automation files of a home; symbolic links are left out."""
    own = [folder / f"{AUTOMATIONS}{suffix}" for suffix in SUFFIXES]
    more = [file for file in sorted((folder / AUTOMATIONS).rglob("*")) if file.suffix.lower() in SUFFIXES]
    return [file for file in (*own, *more) if file.is_file() and not file.is_symlink()]


def _rules(files: list[Path], root: Path, registry: HomeRegistry, tally: Tally) -> Iterator[Row]:
    """Yield type, entity and state of a trigger, then action, type and entity of a device."""
    for file in files:
        tally.file, tally.line = str(file.relative_to(root)), 1
        content = load_yaml(file)
        for block in content if isinstance(content, list) else [content]:
            if content is None:
                continue
            tally.automations += 1
            tally.line = block.line if isinstance(block, Block) else tally.line
            found = list(_products(block, registry, tally))
            tally.read += bool(found)
            yield from found


def _products(block: Any, registry: HomeRegistry, tally: Tally) -> Iterator[Row]:
    """Yield a rule for each event and each call of an automation."""
    if not isinstance(block, Block):
        tally.add(reasons.MALFORMED)
        return
    if "use_blueprint" in block:
        tally.add(reasons.BLUEPRINT, block)
        return
    count_conditions(block, tally)
    starts = _distinct(events(first_of(block, "triggers", "trigger") or [], registry, tally))
    ends = _distinct(calls(first_of(block, "actions", "action") or [], registry, tally))
    if len(starts) * len(ends) > MOST_PRODUCTS:
        tally.add(reasons.PRODUCT, block)
    elif not ends:
        tally.add(reasons.NO_CALL, block)
    elif not starts:
        tally.add(reasons.NO_EVENT, block)
    else:
        for start, end in product(starts, ends):
            yield start.kind, start.entity, start.name, end.name, end.kind, end.entity


def _distinct(parts: Iterator[Part]) -> list[Part]:
    return list(dict.fromkeys(parts))


def _idle(registry: HomeRegistry, used: set[str]) -> list[tuple[str, str]]:
    """Return devices of the registry that no rule names: those that can act, and sensors of a class."""
    found = []
    for entity in sorted(registry.entities.values(), key=lambda one: one.name):
        kind, domain = device_type(entity.name, entity.device_class), domain_of(entity.name)
        useful = domain not in GENERIC or f"{domain}.{entity.device_class}" in table()["types"]
        if kind and useful and entity.listed and entity.name not in used:
            found.append((entity.name, kind))
    return found[:MOST_IDLE]
