"""Tables that only their owner may read."""

import csv
from _csv import Writer  # csv itself names no type of it
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def private_csv(path: Path) -> Iterator[Writer]:
    """Yield a writer of a CSV that only its owner may read, also in place of one that others could."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    with path.open("w", newline="", encoding="utf-8") as file:
        yield csv.writer(file, lineterminator="\n")
