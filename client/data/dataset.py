"""Data sets of any task: sources as the user writes them, units under a vocabulary, summaries.

A source is a file, a folder, a file with a test file, or demo data.
"""

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from client.data.tables.account import Nouns, Reading
from client.data.tables.files import CHUNK
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from common.arrays import Ints
from common.errors import DataError
from common.tasks.spec import VocabularyT

TEST_MARK = "::"
"""Separator of a source and its test file: `clicks.txt::held-out.txt`."""

NESTED = (
    "**/*.y*ml",
    *(f"{folder}{name}" for folder in ("", "*/") for name in (".storage/core.*_registry", "*.parquet")),
)
"""Files of data below the folders of a source, besides all files in the source itself."""

LIVE, SECRETS = "configuration.yaml", "secrets.yaml"
"""File of a folder that Home Assistant works in, with logs and databases; file that is never read."""


@dataclass(frozen=True)
class Source:
    """Source of a data set.

    Args:
        text: `demo`, `demo:START-STOP` or a path; for sessions also `PATH::TEST` with a test file TEST.
        dialect: Columns and forms of the owner's tables.
    """

    text: str
    dialect: Dialect = DEFAULT_DIALECT

    @property
    def path(self) -> Path:
        """Path of the data: a file or a folder."""
        return split_test_file(self.text)[0]

    @property
    def test(self) -> Path | None:
        """Path of the test file; None if there is none."""
        return split_test_file(self.text)[1]


def is_demo(source: str) -> bool:
    """Return True if the data are generated; `demo.csv` is a file."""
    return source == "demo" or source.startswith("demo:")


def demo_range(source: Path | str, whole: int) -> tuple[int, int] | None:
    """Return (start, stop) of generated units; None if the source is a file or folder.

    Args:
        source: Source of the data.
        whole: Default of stop, the number of units of the whole demo data.

    Raises:
        DataError: The range is malformed or empty.
    """
    if not is_demo(str(source)):
        return None
    form = re.fullmatch(r"demo(?::(\d+)-(\d+))?", str(source))
    start, stop = (int(form[1] or 0), int(form[2] or whole)) if form else (0, 0)
    if start >= stop:
        raise DataError(f"invalid demo range '{source}'; write demo, or demo:START-STOP with START below STOP")
    return start, stop


def split_variant(source: str) -> tuple[str, str]:
    """Return the variant of demo data and the source without it; the variant of other sources is empty.

    `demo:breaking:0-9` has variant `breaking` and source `demo:0-9`.
    """
    form = re.fullmatch(r"demo:([a-z][a-z0-9-]*)(:.*)?", source)
    return (form[1], f"demo{form[2] or ''}") if form else ("", source)


def fingerprint(source: str, part: tuple[int, int], seed: int) -> str:
    """Return the SHA-256 of a client's data, by which client state is stored.

    Raises:
        DataError: A file cannot be read.
    """
    digest = hashlib.sha256(f"{source if is_demo(source) else ''}|{part}|{seed}".encode())
    path, test = split_test_file(source)
    try:
        is_live = (path / LIVE).is_file()
        for file in [] if is_live else sorted(path.iterdir()) if path.is_dir() else [path]:
            if file.is_file():
                _add_file(digest, file)
        nested = {file for pattern in NESTED for file in path.glob(pattern) if file.is_file() and file.name != SECRETS}
        for file in sorted(file for file in nested if is_live or file.parent != path):
            digest.update(str(file.relative_to(path)).encode())
            _add_file(digest, file)
        if test:
            with test.open("rb") as held_out:
                digest.update(hashlib.file_digest(held_out, "sha256").digest())
    except OSError as error:
        raise DataError(error.strerror or "cannot be read", error.filename or path) from None
    return digest.hexdigest()


def _add_file(digest: "hashlib._Hash", path: Path) -> None:
    """Add the bytes of a file to a digest, without holding all of them in memory."""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)


def fingerprint_of_all(source: str) -> str:
    """Return the SHA-256 of the whole data, by which ledgers are stored.

    It is the same for every partition and every test file.

    Raises:
        DataError: A file cannot be read.
    """
    return fingerprint(source if is_demo(source) else str(split_test_file(source)[0]), (0, 1), 0)


def resolve_source(source: str) -> str:
    """Return the source with absolute paths; demo data unchanged."""
    if is_demo(source):
        return source
    path, test = split_test_file(source)
    return TEST_MARK.join(str(file.resolve()) for file in (path, test) if file)


def split_test_file(source: str) -> tuple[Path, Path | None]:
    """Return the path of the data and of the test file, the inverse of `with_test`."""
    path, mark, test = source.partition(TEST_MARK)
    return (Path(path), Path(test)) if mark and not Path(source).exists() else (Path(source), None)


class Unit(Protocol):
    """Owner of records: one home, visitor, sensor, person or market."""

    @property
    def name(self) -> str:
        """Unique name within a data set."""


UnitT = TypeVar("UnitT", bound=Unit)


@dataclass(frozen=True, eq=False)
class Dataset(Generic[VocabularyT, UnitT]):
    """Records of units under a vocabulary.

    Args:
        units: Units, ordered by name.
        vocabulary: Names that indices refer to: the reader's argument, or the names in the data.
        notes: Messages of the reader to the owner, such as dropped duplicates; without names of units.
        clients: Names of the units of each client, if a column of the source partitions them.
        reading: Rows that were kept, merged and left out; None for sources without rows.
    """

    units: tuple[UnitT, ...]
    vocabulary: VocabularyT
    notes: tuple[str, ...] = ()
    clients: tuple[tuple[str, ...], ...] = ()
    reading: Reading | None = None


AnyDataset = Dataset[Any, Any]
"""Data set of any task."""


def own_rng(seed: int, name: str) -> "np.random.Generator":
    """Return the generator of a unit, seeded by (seed, name); it is the same on every machine."""
    return np.random.default_rng([seed, int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])])


def floor_share(share: float, count: int) -> int:
    """Return floor(share · count), robust to rounding such as 0.29 · 100 = 28.999…96."""
    return math.floor(share * count + 1e-9)


@dataclass(frozen=True, eq=False)
class DataSummary:
    """Records of U units, in the order of the data set.

    Args:
        record: Noun of a record.
        records: U numbers of records.
        train: U numbers of examples that a client trains on.
        test: U numbers of examples that are held out for the test.
        need: Advice for units without examples: a sentence without a full stop.
        example: Noun of an example; None for the noun of a record.
        totals: Noun, singular -> number, such as devices.
        remarks: Sentences about single units, which name them.
    """

    record: Nouns
    records: Ints
    train: Ints
    test: Ints
    need: str
    example: Nouns | None = None
    totals: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
