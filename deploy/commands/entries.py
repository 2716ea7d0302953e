"""Listings of tasks and methods."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from deploy.cli.output import out, print_object

Describe = Callable[[str], Mapping[str, Any]]


def print_entries(origins: Mapping[str, str], describe: Describe, *, json: bool) -> None:
    """Print name, package and description of each entry, or the error of a broken entry.

    Args:
        origins: Name -> package.
        describe: Return an entry's description by its name.
        json: True for JSON.
    """
    entries = [{"name": name, "package": package, **_described(name, describe)} for name, package in origins.items()]
    if json:
        print_object(entries)
        return
    table = Table("name", "summary", "package", "capabilities")
    for entry in entries:
        cells = (entry["name"], entry["summary"] or entry["error"], entry["package"], "\n".join(_lines(entry)))
        table.add_row(*map(Text, cells))
    out.print(table)


def _described(name: str, describe: Describe) -> dict[str, Any]:
    try:
        return {**describe(name), "error": ""}
    except Exception as error:  # code of a package, which must not break the list
        return {"summary": "", "capabilities": [], "error": str(error)}


def _lines(entry: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"default {key}={value}" for key, value in entry.get("defaults", {}).items() if "." not in key)
    yield from entry["capabilities"]
