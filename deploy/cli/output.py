"""Output of commands: results on stdout, everything else on stderr."""

import json
import sys

from rich.console import Console
from rich.markup import escape

console, out = Console(stderr=True), Console()
"""stderr for progress and notes, stdout for results."""


def note(line: str) -> None:
    """Print a line of text on stderr without markup."""
    console.print(line, soft_wrap=True, markup=False)


def say(line: str) -> None:
    """Print a line of text on stdout without markup."""
    out.print(line, soft_wrap=True, markup=False, highlight=False)


def print_object(found: object) -> None:
    """Print a JSON value as one line, the last of stdout."""
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


def print_error(message: str) -> None:
    """Print an error on stderr."""
    console.print(f"[bold red]fedloom:[/] {escape(message)}", highlight=False, soft_wrap=True)
