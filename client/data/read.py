"""Data sets of every task: reading a source, partition of units among clients, and titles of items."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np

from client.data.dataset import (
    TEST_MARK,
    AnyDataset,
    Dataset,
    Source,
    UnitT,
    demo_range,
    is_demo,
    split_test_file,
    split_variant,
)
from client.data.schemes import BY_LABEL, SIZES, Scheme
from client.data.tables.account import Nouns
from client.data.tables.files import (
    TEST,
    VALIDATION,
    clients_in,
    files_in,
    load,
    split_files,
    splits_of,
    stem_of,
    tables_in,
)
from client.data.tables.schema import DEFAULT_DIALECT, ITEM, PARTITION_MARK, TITLE, TITLE_COLUMNS, Dialect, TableSchema
from client.tasks.registry import CLIENT_TASKS, AnyClientTask
from common.errors import ConfigError, DataError, VocabularyError
from common.registry import expect, naming_packages
from common.tasks.spec import VocabularyT
from common.tasks.vocabulary import Vocabulary
from common.text import printable

WRITTEN = Dialect(missing=("none",))
"""Tables that were written here, whose odd numbers and names were accepted before."""
COLUMNS = ("partition_id", "client_id")
"""Titles of partition columns in data sets on Hugging Face."""


def read_all(
    task: str, source: str, seed: int = 0, vocabulary: Vocabulary | None = None, dialect: Dialect = DEFAULT_DIALECT
) -> AnyDataset:
    """Read all of a source, under the vocabulary or, without one, the data's own.

    Raises:
        DataError: The source cannot be read.
    """
    kind = CLIENT_TASKS[task]
    if not kind.takes_splits:
        _check_splits(task, source)
    dialect = _with_partition(kind.schema, source, dialect)
    variant, units = _demo_units(kind, source) if is_demo(source) else ("", (0, 0))
    generate = kind.variants.get(variant, kind.generate)
    if generate and is_demo(source):  # the table engine would take 40 MB of memory
        demo: Vocabulary = kind.spec.demo()
        if vocabulary is not None and vocabulary != demo:
            problem = "the embedded data do not fit the vocabulary of this federation"
            raise VocabularyError(f"{problem}; set --data to your own data")
        return Dataset(_generate(generate, *units, seed), demo)
    dataset = _read(kind, Source(source, dialect), vocabulary, seed)
    return with_clients(dataset) if dialect.partition else dataset


@lru_cache(maxsize=1)  # a client checks its data at the start, and reads them when a run begins
def _generate(generate: Callable[..., tuple[UnitT, ...]], start: int, stop: int, seed: int) -> tuple[UnitT, ...]:
    return generate(start, stop, seed)


def read_partition(
    task: str,
    source: str,
    part: tuple[int, int],
    seed: int = 0,
    vocabulary: Vocabulary | None = None,
    dialect: Dialect = DEFAULT_DIALECT,
) -> AnyDataset:
    """Read the k-th of K partitions of a source.

    Args:
        task: Name of the task.
        source: Source of the whole data; demo data are generated for this partition only.
        part: (k, K), k from 0.
        seed: Seed of the partition.
        vocabulary: Vocabulary of the indices; None for the names in the data.
        dialect: Columns and forms of the owner's tables.

    Raises:
        DataError: The source cannot be read, or has fewer units than partitions.
    """
    k, number = part
    if is_demo(source):
        return read_all(task, demo_partition(task, source, part), seed, vocabulary)
    whole = read_all(task, source, seed, vocabulary, dialect)
    return whole if number == 1 else partition(whole, number, seed, CLIENT_TASKS[task].unit)[k]


def read_under(task: str, dataset: AnyDataset, vocabulary: Vocabulary | None) -> AnyDataset:
    """Return the records of a data set under another vocabulary, or under the names that they use.

    They are written to a private temporary file and read again, as those of a partition are.

    Raises:
        DataError: The vocabulary can express none of them.
    """
    kind = CLIENT_TASKS[task]
    with TemporaryDirectory() as folder:
        table = Path(folder) / kind.table
        kind.write(table, dataset)
        return _read(kind, Source(str(table), WRITTEN), vocabulary, 0)


def _read(kind: AnyClientTask, source: Source, vocabulary: Vocabulary | None, seed: int) -> AnyDataset:
    """Return what the reader of a task has read.

    Raises:
        DataError: There is no unit, or two have one name.
        PackageError: A package's reader returned no data set of named units under a vocabulary of its task.
    """
    with naming_packages(CLIENT_TASKS.packages(kind.name)):
        dataset = expect(kind.read(source, vocabulary, seed), Dataset)
        expect(dataset.vocabulary, kind.spec.vocabulary)
        names = Counter(unit.name for unit in expect(dataset.units, tuple))
    if twice := next((name for name, number in names.items() if number > 1), ""):
        raise DataError(f"two {kind.unit[1]} have the name '{printable(twice)}'; give each its own", source.text)
    if not names:
        raise DataError(f"no {kind.unit[0]} is in the data; `fedloom check` shows what is read", source.text)
    return cast(AnyDataset, dataset)


def demo_partition(task: str, source: str, part: tuple[int, int]) -> str:
    """Return the k-th of K ranges of nearly equal length of demo data, such as `demo:0-200`."""
    variant, (start, stop) = _demo_units(CLIENT_TASKS[task], source)
    prefix = f"demo:{variant}:" if variant else "demo:"
    k, number = part
    first, last = (start + n * (stop - start) // number for n in (k, k + 1))
    return f"{prefix}{first}-{last}"


def _demo_units(kind: AnyClientTask, source: str) -> tuple[str, tuple[int, int]]:
    """Return the variant of a task's demo data, empty for none, and (start, stop) of its units."""
    variant, plain = split_variant(source)
    variant = variant if variant in kind.variants else ""
    return variant, demo_range(plain if variant else source, kind.demo_units) or (0, 0)


def partition(
    dataset: Dataset[VocabularyT, UnitT], clients: int, seed: int = 0, unit: Nouns = ("unit", "units")
) -> Sequence[Dataset[VocabularyT, UnitT]]:
    """Partition a data set among clients; 0 clients: one unit per client, in the units' order.

    Raises:
        DataError: There are more clients than units.
    """
    shards: Sequence[tuple[UnitT, ...]] = [(owner,) for owner in dataset.units]
    if clients:
        shards = partition_units(dataset.units, clients, seed, unit[1])
    return [replace(dataset, units=shard) for shard in shards]


def partition_units(units: Sequence[UnitT], clients: int, seed: int, noun: str) -> list[tuple[UnitT, ...]]:
    """Partition units among clients by a seeded hash of their names; sizes differ by at most one.

    Raises:
        DataError: There are more clients than units.
    """
    count = len(units)
    if not 1 <= clients <= count:
        raise DataError(f"cannot partition {count} {noun} among {clients} clients; set 1 to {count} clients")
    shuffled = sorted(units, key=lambda unit: hashlib.sha256(f"{seed}:{unit.name}".encode()).digest())
    return [tuple(sorted(shuffled[k::clients], key=lambda unit: unit.name)) for k in range(clients)]


def partition_read(
    task: str,
    data: str,
    whole: AnyDataset,
    clients: int,
    dialect: Dialect = DEFAULT_DIALECT,
    scheme: Scheme | None = None,
) -> Sequence[AnyDataset]:
    """Return each client's partition of a source that was read whole.

    A scheme applies to data of any form.

    A folder with as many tables as clients gives one table to each. Embedded data are cut in order, as clients generate their
    own ranges. All other data are partitioned by a hash of the names of their units.

    0 clients stand for one a unit, or one a value of the partition column.

    Raises:
        DataError: The data have fewer units than clients.
    """
    if scheme:
        return partition_by(task, whole, clients, scheme)
    if whole.clients:
        return parts_by_column(whole, clients, CLIENT_TASKS[task].unit[1])
    tables = find_own_tables(task, data)
    if len(tables) == clients > 0:
        return [read_all(task, str(table), vocabulary=whole.vocabulary, dialect=dialect) for table in tables]
    partitions = partition(whole, clients, unit=CLIENT_TASKS[task].unit)  # also refuses more clients than units
    if not is_demo(data):
        return partitions
    cuts = [len(whole.units) * k // len(partitions) for k in range(len(partitions) + 1)]
    return [replace(whole, units=whole.units[start:end]) for start, end in pairwise(cuts)]


def partition_by(task: str, whole: AnyDataset, clients: int, scheme: Scheme) -> list[AnyDataset]:
    """Return each client's partition of a data set by a scheme.

    Raises:
        ConfigError: The scheme needs labels of people, or a number of clients.
        DataError: A client would have no unit.
    """
    kind, label = CLIENT_TASKS[task], CLIENT_TASKS[task].label
    if label is None and scheme.name in BY_LABEL:
        able = [name for name in CLIENT_TASKS if CLIENT_TASKS[name].label]
        raise ConfigError(
            f"--partition {scheme} groups people by labels, and {kind.unit[1]} of task '{task}' have none;"
            f" use {', '.join(SIZES)}, or a task of {', '.join(able)}"
        )
    if not clients:
        raise ConfigError(f"--partition {scheme} needs a number of clients; add --clients")
    labels = np.array([label(unit) if label else 0 for unit in whole.units], np.float64)
    return [
        replace(whole, units=tuple(whole.units[k] for k in numbers.tolist()))
        for numbers in scheme.divide(labels, clients)
    ]


def with_clients(dataset: AnyDataset) -> AnyDataset:
    """Return a data set that was read with a partition column, with the units of each client.

    Units bear their own names again; a name that several clients have is followed by the value of the column.
    """
    owned = [unit.name.partition(PARTITION_MARK) for unit in dataset.units]
    names = [name or value for value, _, name in owned]
    again = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    units, clients = [], dict[str, list[str]]()
    for unit, (value, _, _), name in zip(dataset.units, owned, names, strict=True):
        unique = f"{name} ({value})" if name in again else name
        units.append(replace(unit, name=unique))
        clients.setdefault(value, []).append(unique)
    ordered = sorted(clients, key=lambda value: (int(value), "") if value.isdecimal() else (0, value))
    units.sort(key=lambda unit: str(unit.name))
    return replace(dataset, units=tuple(units), clients=tuple(tuple(clients[value]) for value in ordered))


def parts_by_column(dataset: AnyDataset, clients: int, unit: str) -> list[AnyDataset]:
    """Return each client's partition of a data set with clients of its own.

    Raises:
        DataError: Another number of clients is asked for.
    """
    if clients not in (0, len(dataset.clients)):
        message = (
            f"the partition column has {len(dataset.clients):,} values, each of which is a client, not {clients:,}"
        )
        raise DataError(f"{message}; leave --clients out, or leave --partition out to partition {unit}")
    units = {one.name: one for one in dataset.units}
    return [replace(dataset, units=tuple(units[name] for name in names), clients=()) for names in dataset.clients]


def find_own_tables(task: str, source: str) -> list[Path]:
    """Return the tables or folders in a folder, each of which may be one client's data."""
    folder, kind = Path(source), CLIENT_TASKS[task]
    if not folder.is_dir():
        return []
    if side_by_side := clients_in(folder):
        return side_by_side
    return [] if splits_of(folder) or kind.published(folder) else tables_in(folder, kind.suffixes)


def _check_splits(task: str, source: str) -> None:
    """Accept a source without held-out splits, which a task that holds out a share itself would train on.

    Raises:
        DataError: The source is a folder with such a split.
    """
    folder = Path(source)
    splits = {} if is_demo(source) or not folder.is_dir() else dict(split_files(folder))
    if held := [split for split in (TEST, *VALIDATION) if split in splits]:
        problem = f"task {task} holds out a share itself and would train on the split {held[0]}"
        raise DataError(f"{problem}; name one file of the folder, or move the files of that split away", folder)


def _with_partition(schema: TableSchema, source: str, dialect: Dialect) -> Dialect:
    """Return the dialect with the partition column of a data set from Hugging Face, if it has one."""
    folder = Path(source)
    if dialect.partition or not schema.unit or is_demo(source) or not folder.is_dir():
        return dialect
    files = [file for paths in splits_of(folder).values() for file in paths]
    titles = titles_of(files[0], schema, dialect) if files else []
    return replace(dialect, partition=next((title for title in COLUMNS if title in titles), ""))


def titles_of(path: Path, schema: TableSchema, dialect: Dialect) -> Sequence[str]:
    """Return the titles of a table.

    Raises:
        DataError: It is none, or lacks a column that the owner ignores.
    """
    from client.data.tables.reader import detect_cells  # takes 40 MB of memory

    return detect_cells(load(path, dialect.encoding, dialect.skip_lines), schema, dialect).titles


def with_test(task: str, source: str, test: str) -> str:
    """Return the source with the records of the file `test` held out; unchanged if `test` is empty.

    Raises:
        ConfigError: The task does not support a test file, or the data are demo data.
    """
    if test and not CLIENT_TASKS[task].test_file:
        supported = ", ".join(name for name in CLIENT_TASKS if CLIENT_TASKS[name].test_file)
        raise ConfigError(f"--test does not apply to task {task}; remove it, or set --task to one of: {supported}")
    if test and is_demo(source):
        raise ConfigError("--test does not apply to demo data; set --data to your own data")
    return f"{source}{TEST_MARK}{test}" if test else source


SUFFIX, TYPED = ".item", b":token"
"""Suffix of RecBole's files of items, and a type in their header; MovieLens 100K has another `u.item`."""

SCHEMA = TableSchema(columns=TITLE_COLUMNS)


def read_titles(source: str) -> dict[str, str]:
    """Read item -> title from `NAME.item` beside a file `NAME.inter`, or from all such files of a folder.

    Raises:
        DataError: Such a file is malformed.
    """
    from client.data.tables.reader import read_table  # takes 40 MB of memory

    path = split_test_file(source)[0]
    if is_demo(source) or not path.exists():
        return {}
    name = "" if path.is_dir() else stem_of(path).partition(".")[0]
    titles: dict[str, str] = {}
    for file in files_in(path if path.is_dir() else path.parent):
        if file.suffix.lower() == SUFFIX and (not name or file.stem == name) and _is_of_recbole(file):
            table = read_table(file, SCHEMA)
            if TITLE in table:
                pairs = zip(*(table.columns[column].to_pylist() for column in (ITEM, TITLE)), strict=True)
                titles |= {item: title for item, title in pairs if title}
    return titles


def _is_of_recbole(path: Path) -> bool:
    with path.open("rb") as file:
        return TYPED in file.readline(4096)
