"""Reading of a data set, and its partition among clients, for every task."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from client.data.dataset import AnyDataset, Dataset, UnitT
from client.data.partition import partition_units
from client.data.sources import HELD_OUT, Source, demo_range, is_demo
from client.data.tables.formats import tables_in
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from client.tasks.registry import CLIENT_TASKS
from client.tasks.spec import Noun
from common.errors import ConfigError
from common.tasks.spec import VocabularyT
from common.tasks.vocabulary import Vocabulary


def read_all(
    task: str,
    source: str,
    seed: int = 0,
    vocabulary: Vocabulary | None = None,
    dialect: Dialect = DEFAULT_DIALECT,
) -> AnyDataset:
    """Read all of a source, under the vocabulary or, without one, the data's own.

    Raises:
        DataError: The source cannot be read.
    """
    return CLIENT_TASKS[task].read(Source(source, dialect), vocabulary, seed)


def read_partition(
    task: str,
    source: str,
    part: tuple[int, int],
    seed: int = 0,
    vocabulary: Vocabulary | None = None,
    dialect: Dialect = DEFAULT_DIALECT,
) -> AnyDataset:
    """Read the k-th of K partitions of a source, part = (k, K); embedded data are generated for it alone.

    Raises:
        DataError: The source cannot be read, or has fewer units than partitions.
    """
    k, parts = part
    if is_demo(source):
        return read_all(task, demo_partition(task, source, part), seed, vocabulary)
    whole = read_all(task, source, seed, vocabulary, dialect)
    return whole if parts == 1 else partition(whole, parts, seed, CLIENT_TASKS[task].unit)[k]


def demo_partition(task: str, source: str, part: tuple[int, int]) -> str:
    """Return the k-th of K ranges of nearly equal length of an embedded source, such as `demo:0-200`."""
    start, stop = demo_range(source, CLIENT_TASKS[task].demo_units) or (0, 0)
    k, parts = part
    return f"demo:{start + k * (stop - start) // parts}-{start + (k + 1) * (stop - start) // parts}"


def partition(
    dataset: Dataset[VocabularyT, UnitT], clients: int, seed: int = 0, unit: Noun = ("unit", "units")
) -> Sequence[Dataset[VocabularyT, UnitT]]:
    """Partition a data set among clients; 0 clients means one unit each, in their order.

    Raises:
        DataError: There are more clients than units.
    """
    units: Sequence[tuple[UnitT, ...]] = [(one,) for one in dataset.units]
    if clients:
        units = partition_units(dataset.units, clients, seed, unit[1])
    return [replace(dataset, units=owned) for owned in units]


def own_tables(task: str, source: str) -> list[Path]:
    """Return the tables of a folder of tables, each of which may be a client's own."""
    folder, kind = Path(source), CLIENT_TASKS[task]
    return tables_in(folder, kind.suffixes) if folder.is_dir() and not kind.published(folder) else []


def with_test(task: str, source: str, test: str) -> str:
    """Return the source with the records of the file `test` held out; without one, the source as it is.

    Raises:
        ConfigError: The task takes no test file, or the data are embedded.
    """
    if test and not CLIENT_TASKS[task].test_file:
        able = ", ".join(name for name in CLIENT_TASKS if CLIENT_TASKS[name].test_file)
        raise ConfigError(f"--test does not apply to task {task}; remove it, or set --task to one of: {able}")
    if test and is_demo(source):
        raise ConfigError("--test needs your own data; name them with --data")
    return f"{source}{HELD_OUT}{test}" if test else source
