"""Query options that several tasks take, and their values."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from common.errors import ConfigError
from common.registry import load_attribute
from common.text import count
from deploy.tasks.spec import QueryOption, ServingRef, TrainedRun

if TYPE_CHECKING:
    from client.tasks.lists import ItemFilter, Titles
    from common.options import Scalar

HIDE, KEEP = "hide", "keep"


def item_options(seen: str) -> tuple[QueryOption, ...]:
    """Return the options that filter items.

    Args:
        seen: Default of `--seen`.
    """
    return (
        QueryOption("seen", f"Hide or keep items that your data contain; default: {seen}.", f"{HIDE}|{KEEP}"),
        QueryOption("exclude", "Leave out the items in this file, one per line.", "FILE"),
        QueryOption("only", "Choose from the items in this file, such as your stock, one per line.", "FILE"),
    )


def read_filter(query: Mapping[str, str], names: Sequence[str], default: str) -> "tuple[ItemFilter, tuple[str, ...]]":
    """Return the filter of a query, and notes on lines of its files that name no item.

    Args:
        query: Values of the options of `item_options`.
        names: Names of all items.
        default: Default of `--seen`.

    Raises:
        ConfigError: `--seen` has no such value.
        DataError: A file cannot be read.
    """
    from client.tasks.lists import ItemFilter, read_items

    seen = query.get("seen") or default
    if seen not in (HIDE, KEEP):
        raise ConfigError(f"--seen {seen} is unknown; set --seen {HIDE} or --seen {KEEP}")
    files = {name: Path(query[name]) for name in ("exclude", "only") if query.get(name)}
    found = {name: read_items(path, names) for name, path in files.items()}
    notes = tuple(
        f"--{name} {files[name]}: {count(unknown, 'line')} of no item skipped"
        for name, (_, unknown) in found.items()
        if unknown
    )
    none = ItemFilter.seen(hide=seen == HIDE)
    excluded, only = found.get("exclude", (none.excluded, 0))[0], found.get("only", (None, 0))[0]
    return ItemFilter(none.hides_seen, excluded, only), notes


def with_titles(
    key: str, found: Sequence[object], titles: "Titles"
) -> tuple[tuple[str, ...], list[dict[str, "Scalar"]]]:
    """Return the keys of the column that names answers, and the answers as rows.

    Args:
        key: Field of an answer with the id of its item.
        found: Answers, best first.
        titles: Titles to add; without any, rows have none.
    """
    rows = [dict(vars(one)) for one in found]
    if not titles:
        return (key,), rows
    return (key, "title"), [{**row, "title": titles.get(row[key], "")} for row in rows]


def each_user(run: TrainedRun, query: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Yield a query for each unit of the data, by its option `--user`."""
    for unit in run.read("").units:
        yield {**query, "user": unit.name}


def serving_in(module: str, option: str, noun: str = "") -> ServingRef:
    """Return export and local serving of a task by the `SERVING` of a module, imported when needed.

    Args:
        module: Import path of the module.
        option: Option of `fedloom export-model` that names a unit of the data.
        noun: Noun of the unit; empty for the name of the option.
    """
    unit = QueryOption(option, f"Put the data of this {noun or option} into the file; default: the first.")
    return ServingRef(unit, lambda: load_attribute(f"{module}:SERVING"))


def parse_share(option: str, text: str) -> float:
    """Return a number in [0, 1]; 1 for an empty text.

    Raises:
        ConfigError: The text is not such a number.
    """
    try:
        share = float(text or 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ConfigError(f"--{option} {text} is not a number in [0, 1]; give one such as 0.7")
    return share
