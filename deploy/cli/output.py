"""Output of commands: results, listings, messages, and exit codes by class of error."""

import errno
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from common import errors
from common.errors import ConfigError, FedloomError, RunError
from common.files import LEAST_ROOM, await_room

console, out = Console(stderr=True, emoji=False), Console(emoji=False)
"""stderr for progress and notes, stdout for results."""


def note(line: str) -> None:
    """Print a line of text on stderr without markup."""
    console.print(line, soft_wrap=True, markup=False)


def say(line: str) -> None:
    """Print a line of text on stdout without markup."""
    out.print(line, soft_wrap=True, markup=False, highlight=False)


@contextmanager
def silence(wanted: bool = True) -> Iterator[None]:
    """Print no notes and no progress inside the block, if wanted."""
    before, console.quiet = console.quiet, console.quiet or wanted
    try:
        yield
    finally:
        console.quiet = before


def await_room_in(*folders: Path, needed: int = LEAST_ROOM) -> None:
    """Wait until the disks of these folders have the bytes needed, and print a line on the wait."""
    where = " and ".join(map(str, folders))
    await_room(*folders, report=lambda shortage: note(f"{shortage}; waiting for room in {where}"), needed=needed)


def is_confirmed(what: str, lines: Iterable[str], question: str) -> bool:
    """Print lines, ask a question and return True for yes.

    Raises:
        ConfigError: Nobody can answer, as `what` needs.
    """
    if not sys.stdin.isatty():
        raise ConfigError(f"{what} needs a confirmation; set --yes")
    for line in lines:
        note(f"  {line}")
    note(f"{question}? [y/N]")
    return input().strip().lower() in ("y", "yes")


def aligned(rows: Sequence[Sequence[str]], justify: Callable[[str, int], str] = str.ljust) -> Iterator[str]:
    """Iterate over lines with columns of equal width; the first is aligned left, others by `justify`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join([row[0].ljust(widths[0]), *map(justify, row[1:], widths[1:])]).rstrip()


def print_object(found: object) -> None:
    """Print a JSON value as one line, the last of stdout."""
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


def print_error(message: str) -> None:
    """Print an error on stderr, also where notes are not printed."""
    console.quiet = False
    console.print(f"[bold red]fedloom:[/] {escape(message)}", highlight=False, soft_wrap=True)


Describe = Callable[[str], Mapping[str, Any]]


def print_entries(origins: Mapping[str, str], describe: Describe, *, json: bool) -> None:
    """Print name, package and description of each entry, or the error of a broken entry."""
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


INTERRUPTED = 130
"""Exit code after Ctrl-C."""

EXIT_CODES: Mapping[type[BaseException], int] = {
    FedloomError: 1,
    OSError: 1,  # a folder without write permission, a full disk
    RunError: 1,
    errors.FullDiskError: 1,
    errors.WireError: 1,
    errors.ConfigError: 2,
    errors.StateError: 2,
    errors.DataError: 3,
    errors.RefusedError: 4,
    errors.LedgerError: 4,
    errors.BudgetSpentError: 4,
    errors.ConnectError: 5,
    errors.QuorumError: 5,
    KeyboardInterrupt: INTERRUPTED,
}
"""Class -> exit code; a class without an entry has the code of its nearest base."""


def find_error_class(name: str) -> type[FedloomError]:
    """Return the class of that name in the tree of errors; RunError for a name without a class."""
    return next((kind for kind in list_errors() if kind.__name__ == name), RunError)


def list_errors(root: type[FedloomError] = FedloomError) -> list[type[FedloomError]]:
    """Return the classes of the tree of errors, its root included."""
    return [root, *(kind for child in root.__subclasses__() for kind in list_errors(child))]


REMEDIES = {
    errno.EACCES: "run it as the owner, or in a folder in which you may write",
    errno.ENOSPC: "make room, or run it in a folder of another disk",
    errno.EROFS: "run it in a folder that can be written",
}


def describe_error(error: BaseException) -> str:
    """Return the line of an expected error; one of the system names its file and what to do."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    texts = (f"{error.filename}: " if error.filename else "") + error.strerror, REMEDIES.get(error.errno or 0)
    return "; ".join(text for text in texts if text)


def find_exit_code(error: BaseException) -> int | None:
    """Return the exit code of an error; None for an error that nobody expects."""
    return next((EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES), None)
