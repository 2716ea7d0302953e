"""Data sets of every task: reading a source, and partition among clients."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from client.data.dataset import AnyDataset, Dataset, UnitT, demo_dataset
from client.data.partition import partition_units
from client.data.sources import TEST_MARK, Source, demo_range, is_demo
from client.data.tables.formats import tables_in
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from client.tasks.registry import CLIENT_TASKS
from client.tasks.spec import Noun
from common.errors import ConfigError
from common.tasks.spec import VocabularyT
from common.tasks.vocabulary import Vocabulary


def read_all(
    task: str, source: str, seed: int = 0, vocabulary: Vocabulary | None = None, dialect: Dialect = DEFAULT_DIALECT
) -> AnyDataset:
    """Read all of a source, under the vocabulary or, without one, the data's own.

    Raises:
        DataError: The source cannot be read.
    """
    kind = CLIENT_TASKS[task]
    if kind.generate and is_demo(source):  # the table engine would take 40 MB of memory
        demo = demo_dataset(source, kind.demo_units, kind.generate, seed, kind.spec.demo(), vocabulary)
        return cast(AnyDataset, demo)
    return kind.read(Source(source, dialect), vocabulary, seed)


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
    k, parts = part
    if is_demo(source):
        return read_all(task, demo_partition(task, source, part), seed, vocabulary)
    whole = read_all(task, source, seed, vocabulary, dialect)
    return whole if parts == 1 else partition(whole, parts, seed, CLIENT_TASKS[task].unit)[k]


def demo_partition(task: str, source: str, part: tuple[int, int]) -> str:
    """Return the k-th of K ranges of nearly equal length of demo data, such as `demo:0-200`."""
    start, stop = demo_range(source, CLIENT_TASKS[task].demo_units) or (0, 0)
    k, parts = part
    return f"demo:{start + k * (stop - start) // parts}-{start + (k + 1) * (stop - start) // parts}"


def partition(
    dataset: Dataset[VocabularyT, UnitT], clients: int, seed: int = 0, unit: Noun = ("unit", "units")
) -> Sequence[Dataset[VocabularyT, UnitT]]:
    """Partition a data set among clients; 0 clients: one unit per client, in the units' order.

    Raises:
        DataError: There are more clients than units.
    """
    shards: Sequence[tuple[UnitT, ...]] = [(owner,) for owner in dataset.units]
    if clients:
        shards = partition_units(dataset.units, clients, seed, unit[1])
    return [replace(dataset, units=shard) for shard in shards]


def find_own_tables(task: str, source: str) -> list[Path]:
    """Return the tables in a folder, each of which may be one client's data; none for other sources."""
    folder, kind = Path(source), CLIENT_TASKS[task]
    return tables_in(folder, kind.suffixes) if folder.is_dir() and not kind.published(folder) else []


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
