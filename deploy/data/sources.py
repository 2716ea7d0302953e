"""Data of clients on this machine: the partition of a source, and its vocabulary.

Federations of processes and simulations share this code, so their partitions are equal.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from client.data.dataset import AnyDataset, is_demo, resolve_source
from client.data.read import WRITTEN, demo_partition, find_own_tables, partition_read, read_all
from client.data.schemes import Scheme
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from client.tasks.registry import CLIENT_TASKS
from common.config.run import RunConfig
from common.errors import ConfigError, DataError
from common.tasks.registry import read_vocabulary
from common.tasks.vocabulary import FEDERATED, Vocabulary
from deploy.data.partitions import Partitioning
from deploy.federation.start import ClientSpec
from deploy.files import write_file

DEFAULT_CLIENTS, MOST_CLIENTS = 4, 8
"""Default and maximum number of client processes if no number is set."""


@dataclass(frozen=True)
class RunSource:
    """Data of a simulation, for the machines of a cluster.

    Args:
        task: Task of the data.
        data: Source of the data, with absolute paths.
        clients: Number of clients; 0 for one a unit.
        dialect: Options of reading, as `Dialect.to_fields` has them.
        scheme: Scheme of the partition, such as `dirichlet:0.3`; empty for the default one.
    """

    task: str
    data: str
    clients: int
    dialect: dict[str, Any]
    scheme: str = ""


def read_catalogue(task: str, path: Path | None) -> Vocabulary | None:
    """Read a vocabulary file; None gives None.

    Raises:
        ConfigError: The vocabulary is one that clients find.
        DataError: The file is missing or holds no vocabulary.
    """
    if path is None:
        return None
    if str(path) == FEDERATED:
        raise ConfigError("the vocabulary of --catalogue federated is found by the clients of a run; give a file here")
    try:
        return read_vocabulary(task, path.read_text("utf-8-sig"))
    except OSError as error:
        raise DataError(error.strerror or "cannot be read", path) from None
    except UnicodeDecodeError:
        raise DataError("not UTF-8 text; save it as UTF-8", path) from None
    except DataError as error:
        raise DataError(str(error), path) from None


def partition_source(
    task: str,
    data: str,
    vocabulary: Vocabulary | None,
    clients: int | None = 0,
    dialect: Dialect = DEFAULT_DIALECT,
    *,
    fewest: int = DEFAULT_CLIENTS,
    scheme: Scheme | None = None,
) -> Sequence[AnyDataset]:
    """Return each client's partition of a source; see `partition_read`.

    Args:
        task: Task of the data.
        data: Source of the data.
        vocabulary: Vocabulary to read under; None for the data's own.
        clients: Number of clients; 0 for one a unit, None for the default number of processes.
        dialect: Columns and forms of the owner's tables.
        fewest: Number of processes if the data suggest none.
        scheme: Scheme of the partition; None for the default one.

    Raises:
        DataError: The data cannot be read, or have fewer units than clients.
    """
    whole = read_all(task, data, vocabulary=vocabulary, dialect=dialect)
    if clients is None:
        clients = _default_clients(task, whole, len(find_own_tables(task, data)), fewest)
    return partition_read(task, data, whole, clients, dialect, scheme)


def _default_clients(task: str, whole: AnyDataset, tables: int, fewest: int) -> int:
    """Return the number of clients if none is set: one per unit or per table, up to `MOST_CLIENTS`.

    Raises:
        ConfigError: A partition column has more values.
    """
    if whole.clients:
        if len(whole.clients) > MOST_CLIENTS:
            raise ConfigError(
                f"the partition column has {len(whole.clients):,} values; say --clients {len(whole.clients)} for as many"
                " processes, or use fedloom simulate"
            )
        return len(whole.clients)
    if CLIENT_TASKS[task].client_per_unit:
        return min(len(whole.units), MOST_CLIENTS)
    return tables if 1 < tables <= MOST_CLIENTS else fewest


def unit_names(task: str, partitions: Sequence[AnyDataset]) -> dict[str, str]:
    """Return client -> the names of its units, for tasks whose units are public."""
    if not CLIENT_TASKS[task].public_units:
        return {}
    return {f"client-{k}": " + ".join(unit.name for unit in part.units) for k, part in enumerate(partitions)}


def warnings(config: RunConfig, partitions: Sequence[AnyDataset]) -> Iterable[str]:
    """Return warnings about the data of all clients before training."""
    units = tuple(unit for part in partitions for unit in part.units)
    return CLIENT_TASKS[config.task].warnings(config.task_options, replace(partitions[0], units=units))


def notes(partitions: Sequence[AnyDataset]) -> list[str]:
    """Return the notes of the reader, each once."""
    return list(dict.fromkeys(note for part in partitions for note in part.notes))


def write_clients(
    task: str, data: str, partitions: Sequence[AnyDataset], home: Path, root: Path, dialect: Dialect = DEFAULT_DIALECT
) -> list[ClientSpec]:
    """Write each client's partition and return the descriptions of the clients.

    Args:
        task: Task of the data.
        data: Source; clients of embedded data generate their own ranges.
        partitions: Partition of the source.
        home: Folder of the run; each client has a folder below it.
        root: Folder of partitions and client state that outlive the run.
        dialect: Columns and forms of the owner's tables; tables that are written here need none.
    """
    homes = [home / f"client-{k}" for k in range(len(partitions))]
    if is_demo(data):
        ranges = [demo_partition(task, data, (k, len(partitions))) for k in range(len(partitions))]
        specs = [ClientSpec(folder.name, task, source, folder) for folder, source in zip(homes, ranges, strict=True)]
    else:
        partitioning = Partitioning(root, task, resolve_source(data), len(partitions))
        shares = [str(share) for share in partitioning.write(partitions)]
        owned = {str(table.resolve()) for table in find_own_tables(task, data)}
        placed = partial(ClientSpec, state=partitioning.state, source=partitioning.data)
        specs = [
            placed(folder.name, task, share, folder, dialect=(dialect if share in owned else WRITTEN).options)
            for folder, share in zip(homes, shares, strict=True)
        ]
    _store(home, specs)
    return specs


def _store(home: Path, specs: Sequence[ClientSpec]) -> None:
    stored = json.dumps([asdict(spec) for spec in specs], default=str)
    write_file(home / "clients.json", stored.encode(), overwrite=True)


def move_clients(home: Path, target: Path, leaves: Callable[[str], bool]) -> None:
    """Move the folder of a run's clients, and store those that stay.

    The folder of a client that leaves is moved, too: it is its owner's.
    """
    staying = [spec for spec in stored_clients(home) if not leaves(spec.name)]
    home.rename(target)
    _store(target, [replace(spec, home=target.resolve() / spec.name) for spec in staying])


def stored_clients(home: Path) -> list[ClientSpec]:
    """Return the clients that `write_clients` stored in `home`, for a run that is resumed.

    Raises:
        ConfigError: The folder holds none.
    """
    try:
        stored = json.loads((home / "clients.json").read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"no clients of run '{home.name}' in {home.parent}; resume it with the command, and in the folder, of its start"
        ) from None
    return [_from_json(**spec) for spec in stored]


def _from_json(home: str, state: str | None = None, dialect: Sequence[str] = (), **rest: Any) -> ClientSpec:
    return ClientSpec(home=Path(home), state=Path(state) if state else None, dialect=tuple(dialect), **rest)
