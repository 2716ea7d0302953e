"""Output of commands that the Python interface calls."""

from collections.abc import Iterator
from contextlib import contextmanager

from deploy.cli.output import console


@contextmanager
def silence(wanted: bool = True) -> Iterator[None]:
    """Print no notes and no progress inside the block, if wanted."""
    before, console.quiet = console.quiet, console.quiet or wanted
    try:
        yield
    finally:
        console.quiet = before
