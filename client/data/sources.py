"""Sources of data: a file, a folder, two files, or embedded data."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from common.errors import DataError

HELD_OUT = "::"
"""Mark between a source of sessions and the file to hold out, as in `clicks.txt::held-out.txt`."""


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
    """Return True if the data are embedded; a file may be named demo.csv."""
    return source == "demo" or source.startswith("demo:")


def demo_range(source: Path | str, whole: int) -> tuple[int, int] | None:
    """Return the first unit of embedded data and the one past the last; None for data that are read.

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
    """Return the fingerprint that binds client state to its data.

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
    """Return the fingerprint that binds a ledger to its data, for every partition and held-out file.

    Raises:
        DataError: A file may not be read.
    """
    return fingerprint(source if is_demo(source) else str(and_test(source)[0]), (0, 1), 0)


def located(source: str) -> str:
    """Return the source with its absolute path; embedded data keep their name."""
    if is_demo(source):
        return source
    path, test = and_test(source)
    return HELD_OUT.join(str(file.resolve()) for file in (path, test) if file)


def and_test(source: str) -> tuple[Path, Path | None]:
    """Return the two files that `with_test` joined in one source."""
    path, mark, test = source.partition(HELD_OUT)
    return (Path(path), Path(test)) if mark and not Path(source).exists() else (Path(source), None)
