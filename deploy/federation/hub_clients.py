"""Clients of a hub: from a folder with `clients.toml`, or partitions of one source."""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from client.data.dataset import TEST_MARK, is_demo, resolve_source
from client.data.read import demo_partition, find_own_tables, partition_read, read_all
from client.data.tables.schema import Dialect
from client.owner.policy import find_looser, read_policy
from common.errors import ConfigError
from common.node_names import check_name
from common.text import printable
from deploy.data.partitions import PARTITIONS, Partitioning

FILE = "clients.toml"
"""File in a folder with the data of a hub's clients."""


Answers = Annotated[tuple[Literal["sums", "replies"], ...], Field(min_length=1)]


class Defaults(BaseModel):
    """Settings of all clients of a hub.

    Args:
        policy: Policy file of the clients that name none.
        locked: True if a client's own policy, or answer, must not allow more.
        answer: Forms in which updates may leave the hub, for clients that name none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy: str = ""
    locked: bool = False
    answer: Answers = ("sums", "replies")


class Entry(BaseModel):
    """Client in the file.

    Args:
        data: Data of the client, relative to the folder.
        policy: Its policy file, relative to the folder; empty for the default one.
        answer: Forms in which its update may leave the hub: `sums` with other clients, single `replies`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: str
    policy: str = ""
    answer: Answers | None = None


class ClientsFile(BaseModel):
    """Content of `clients.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    defaults: Defaults = Defaults()
    clients: dict[str, Entry] = Field(min_length=1)


@dataclass(frozen=True)
class HostedData:
    """Data of a client of a hub.

    Args:
        name: Name of the client at the hub.
        data: Source of its data.
        policy: Its policy file; None for the hub's own.
        state: Folder of its private state; None for the hub's own.
        is_own: True if the data are an owner's table, False if they were written here.
        sums_only: True if its update may leave the hub inside sums alone.
    """

    name: str
    data: str
    policy: Path | None = None
    state: Path | None = None
    is_own: bool = True
    sums_only: bool = False


def is_hub(data: str, clients: int | None) -> bool:
    """Return True if these options of `fedloom join` make a hub.

    Raises:
        ConfigError: They contradict each other.
    """
    has_file = not is_demo(data) and (Path(data) / FILE).is_file()
    if has_file and clients is not None:
        raise ConfigError(f"{Path(data) / FILE} names the clients; remove --clients")
    return has_file or clients is not None


def read_clients(folder: Path) -> list[HostedData]:
    """Return the clients that the file in a folder names.

    Raises:
        ConfigError: The file is malformed, or leads out of the folder.
    """
    path = folder / FILE
    try:
        found = ClientsFile.model_validate(tomllib.loads(path.read_text("utf-8-sig")))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    hosted = []
    for name, entry in found.clients.items():
        policy = entry.policy or found.defaults.policy
        data = TEST_MARK.join(str(_inside(folder, part)) for part in entry.data.split(TEST_MARK))
        source = entry.data if is_demo(entry.data) else data
        answer = found.defaults.answer if entry.answer is None else entry.answer
        own = HostedData(check_name(name), source, _inside(folder, policy) if policy else None)
        hosted.append(replace(own, sums_only="replies" not in answer))
        if found.defaults.locked and entry.policy:
            _check_locked(folder, name, _inside(folder, policy), found.defaults.policy)
        if found.defaults.locked and not {*answer} <= {*found.defaults.answer}:
            raise ConfigError(f"{path}: clients.{name}: answer allows more than the locked one; remove it, or locked")
    return hosted


def _check_locked(folder: Path, name: str, own: Path, default: str) -> None:
    """Check that a client's policy allows no more than the locked one.

    Raises:
        ConfigError: It does; names the client and the keys.
    """
    locked = read_policy(_inside(folder, default) if default else None)
    if looser := find_looser(read_policy(own), locked):
        raise ConfigError(
            f"{folder / FILE}: clients.{name}: {own.name} allows more than the locked policy ({', '.join(looser)});"
            " make it stricter, or remove locked"
        )


def partition_clients(task: str, data: str, clients: int, dialect: Dialect) -> list[HostedData]:
    """Return clients with a partition of a source each; the partitions are those of `fedloom up`.

    Args:
        task: Task of the data.
        data: Source of the data.
        clients: Number of clients; 0 for one a unit.
        dialect: Columns and forms of the owner's tables.

    Raises:
        DataError: The data cannot be read, or have fewer units than clients.
    """
    parts = partition_read(task, data, read_all(task, data, dialect=dialect), clients, dialect)
    names = [f"client-{k}" for k in range(len(parts))]
    if is_demo(data):
        return [HostedData(name, demo_partition(task, data, (k, len(parts)))) for k, name in enumerate(names)]
    partitioning = Partitioning(PARTITIONS, task, resolve_source(data), len(parts))
    owned, state = {table.resolve() for table in find_own_tables(task, data)}, partitioning.state.resolve()
    tables = partitioning.write(parts)
    return [
        HostedData(name, str(table), state=state, is_own=table in owned)
        for name, table in zip(names, tables, strict=True)
    ]


def _inside(folder: Path, name: str) -> Path:
    """Return a path in the folder.

    Raises:
        ConfigError: The path, or a link, leads out of it.
    """
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ConfigError(f"{folder / FILE}: '{printable(name, 80)}' leads out of the folder; move the file into it")
    return path
