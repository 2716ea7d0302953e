"""What a person calls data by: a file, a folder, two files, or data made on the spot."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from common.errors import DataError

HELD_OUT = "::"
"""Between a source of sessions and the file of those to hold out: `clicks.txt::held-out.txt` is a source too."""


@dataclass(frozen=True)
class Source:
    """Place of a data set.

    Args:
        text: `demo`, `demo:START-STOP` or a path; for sessions also `PATH::TEST`, where TEST is a file to hold out.
        dialect: Columns and forms of the owner's tables.
    """

    text: str
    dialect: Dialect = DEFAULT_DIALECT

    @property
    def path(self) -> Path:
        """File or folder of the data."""
        return and_test(self.text)[0]

    @property
    def test(self) -> Path | None:
        """File of records to hold out."""
        return and_test(self.text)[1]


def is_demo(source: str) -> bool:
    """Whether the data are made, not read; a file may well be called demo.csv."""
    return source == "demo" or source.startswith("demo:")


def demo_range(source: Path | str, whole: int) -> tuple[int, int] | None:
    """First, and one past the last, of made data of which there are so many; None of data that are read.

    Raises:
        DataError: The range is misspelt or empty.
    """
    if not is_demo(str(source)):
        return None
    found = re.fullmatch(r"demo(?::(\d+)-(\d+))?", str(source))
    start, stop = (int(found[1] or 0), int(found[2] or whole)) if found else (0, 0)
    if start >= stop:
        raise DataError(f"{source} names nothing; write demo, or demo:START-STOP with START below STOP")
    return start, stop


def fingerprint(source: str, part: tuple[int, int], seed: int) -> str:
    """What state is bound to: other data, other fingerprint.

    Raises:
        DataError: A file may not be read.
    """
    digest = hashlib.sha256(f"{source if is_demo(source) else ''}|{part}|{seed}".encode())
    path, test = and_test(source)
    try:
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            digest.update(file.read_bytes() if file.is_file() else b"")
        if test:
            digest.update(hashlib.sha256(test.read_bytes()).digest())
    except OSError as error:
        raise DataError(error.strerror or "cannot be read", error.filename or path) from None
    return digest.hexdigest()


def fingerprint_of_all(source: str) -> str:
    """What a ledger is bound to: the data, whichever part of them a client takes and whatever it holds out.

    Raises:
        DataError: A file may not be read.
    """
    return fingerprint(source if is_demo(source) else str(and_test(source)[0]), (0, 1), 0)


def located(source: str) -> str:
    """The source by its whole path, whichever folder a command was started in; embedded data as they are called."""
    if is_demo(source):
        return source
    path, test = and_test(source)
    return HELD_OUT.join(str(file.resolve()) for file in (path, test) if file)


def and_test(source: str) -> tuple[Path, Path | None]:
    """The two files that `with_test` made one source of."""
    path, mark, test = source.partition(HELD_OUT)
    return (Path(path), Path(test)) if mark and not Path(source).exists() else (Path(source), None)
