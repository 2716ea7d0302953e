"""Partitions of a data set among clients of this machine, stored with their privacy ledgers.

A source is partitioned once per number of clients, into a folder named by the source's path. Later runs find the ledgers
beside the partitions, also after rows were added to the source.
"""

import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from client.data.dataset import AnyDataset, fingerprint, is_demo, resolve_source, split_test_file
from client.data.read import find_own_tables, titles_of
from client.data.tables.files import find_tables
from client.data.tables.schema import DEFAULT_DIALECT, Dialect, normalize_title
from client.privacy.ledger.locate import data_path, find_ledger, ledger_path
from client.tasks.registry import CLIENT_TASKS
from common.errors import DataError, LedgerError
from common.files import be_patient
from deploy.cli.options import LOCAL, DataRequest
from deploy.cli.output import note
from deploy.federation.runs import origin_of
from deploy.files import write_file

PARTITIONS = Path(".fedloom/dealt")
"""Folder of the partitions that `up` wrote: private. Ledgers of earlier versions fix its name."""

STATE = "state"
"""Folder below it with the state of all clients."""

UNITS = "people.json"
"""File in the folder of a partitioning with the client of each unit: private."""


@dataclass(frozen=True)
class Partitioning:
    """Source of data partitioned among clients.

    Args:
        root: Folder of all partitions on this machine.
        task: Task of the data.
        data: Data file or folder, not demo data.
        clients: Number of partitions; a folder with as many tables is left as it is.
    """

    root: Path
    task: str
    data: str
    clients: int

    @property
    def state(self) -> Path:
        """Folder of the state of all clients; it leads from copied or renamed data to their ledgers."""
        return self.root / STATE

    @property
    def folder(self) -> Path:
        """Folder of the partitions."""
        return self.root / f"{_mark(self.data)}-{self.task}-{self.clients}"

    def tables(self) -> list[Path]:
        """Return each client's table."""
        return [table.resolve() for table in self.own_tables()] or self.written_tables()

    def own_tables(self) -> list[Path]:
        """Return the tables of a folder with one table for each client; empty for any other source."""
        tables = find_own_tables(self.task, self.data)
        return tables if len(tables) == self.clients else []

    def written_tables(self) -> list[Path]:
        """Return the places of partitions that are written here."""
        return [self.folder / f"client-{k}" / CLIENT_TASKS[self.task].table for k in range(self.clients)]

    def write(self, partitions: Sequence[AnyDataset]) -> list[Path]:
        """Write each client's partition in place of an earlier one and return `tables`.

        Raises:
            DataError: A client with releases in its ledger has no units left.
            LedgerError: A ledger, or the file with the client of each unit, is missing.
        """
        if not self.own_tables():
            for table, part in zip(self.tables(), self._with_earlier_clients(partitions), strict=True):
                draft = table.with_name(f"{os.getpid()}-{table.name}")
                draft.parent.mkdir(parents=True, exist_ok=True)
                be_patient(partial(CLIENT_TASKS[self.task].write, draft, part), table)
                draft.replace(table)
        return self.tables()

    def ledgers(self) -> list[Path]:
        """Return the ledgers that exist, at most one a partition.

        Includes those of partitions that were written before the folder had a table for each client.

        Raises:
            LedgerError: A ledger is missing.
        """
        return self.ledgers_of(dict.fromkeys([*self.tables(), *self.written_tables()]))

    def ledgers_of(self, tables: Iterable[Path]) -> list[Path]:
        """Return the ledgers that exist of these tables."""
        return [path for table in tables if (path := self._ledger(str(table))).exists()]

    def _ledger(self, table: str) -> Path:
        if not os.path.exists(table):
            return ledger_path(table, self.state, "")
        return find_ledger(table, self.state, fingerprint(table, (0, 1), 0))

    def _with_earlier_clients(self, partitions: Sequence[AnyDataset]) -> list[AnyDataset]:
        """Return the partitions; once a ledger exists, every unit stays with its earlier client.

        A ledger accounts for the units of its client.
        """
        units = {unit.name: unit for part in partitions for unit in part.units}
        client_of = {unit.name: k for k, part in enumerate(partitions) for unit in part.units}
        client_of |= self._earlier_clients() if self.ledgers() else {}
        owned = [tuple(units[name] for name in sorted(units) if client_of[name] == k) for k in range(self.clients)]
        for k, client_units in enumerate(owned):
            if not client_units:
                raise DataError(
                    f"partition client-{k} has no records left, but its ledger has releases;"
                    " restore the removed records",
                    self.data,
                )
        write_file(self.folder / UNITS, json.dumps(client_of).encode(), mode=0o600, overwrite=True)
        return [replace(part, units=client_units) for part, client_units in zip(partitions, owned, strict=True)]

    def _earlier_clients(self) -> dict[str, int]:
        """Return the number of the client of each unit."""
        try:
            return cast(dict[str, int], json.loads((self.folder / UNITS).read_text("utf-8")))
        except (OSError, ValueError):
            raise LedgerError(
                f"{self.folder / UNITS}, the file with the client of each unit, is missing or damaged;"
                " restore it, because nothing is released without it"
            ) from None


def partition_ledgers(root: Path, data: str) -> list[Path]:
    """Return all ledgers of a source: of its partitions, its tables, or the folder of its table.

    Raises:
        LedgerError: A ledger is missing.
    """
    source = data_path(data).resolve()
    beside = table_ledgers(source) if source.is_dir() else folder_ledger(source)
    partitionings = (Partitioning(root, task, data, clients) for task, clients in sorted(partitionings_of(root, data)))
    return beside + [path for partitioning in partitionings for path in partitioning.ledgers()]


def partitionings_of(root: Path, data: str) -> set[tuple[str, int]]:
    """Return task and number of clients of every partitioning of a source."""
    marks = [folder.name.split("-") for folder in root.glob(f"{_mark(data)}-*-*")]
    return {(task, int(clients)) for _, task, clients in marks}


def table_ledgers(folder: Path) -> list[Path]:
    """Return the ledgers of single tables of a folder."""
    return sorted(folder.glob(".*.fedloom-ledger"))


def folder_ledger(table: Path) -> list[Path]:
    """Return the ledger of a client that joined with the whole folder of a table, if it exists."""
    whole = table.resolve().parent / ".fedloom" / "ledger"
    return [whole] if table.is_file() and whole.is_file() else []


def _mark(data: str) -> str:
    return hashlib.sha256(bytes(data_path(data).resolve())).hexdigest()[:16]


SOURCE = "source.json"
"""File of a run's private folder with its data and the options of reading them."""


def remember_source(home: Path, source: DataRequest, task: str = "") -> None:
    """Store data and how they are read in the private folder of a run or, with a task, of a client."""
    if not is_demo(source.data):
        found = {**source.dialect.to_fields(), "data": resolve_source(source.data)}
        found.pop("partition", None)
        write_file(home / _source_of(task), json.dumps(found).encode(), mode=0o600, overwrite=True)


def remembered(source: DataRequest, run: Path, task: str, state_dir: Path) -> DataRequest:
    """Return the data of a run, with its options of reading, unless others are named.

    They are those of a command here or, if clients joined the run, of the last client here that joined with data of the task.
    Other data are read with these options too, and a note says so, if their first table has the chosen columns.
    """
    files, origin = [LOCAL / command / run.name / SOURCE for command in ("up", "simulate")], origin_of(run)
    if origin and origin.command in ("serve", "submit"):
        files += sorted(state_dir.glob(f"*/{_source_of(task)}"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files:
        try:
            found = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            continue
        data = split_test_file(found.pop("data"))[0]
        if source.dialect != DEFAULT_DIALECT or source.data.startswith("demo:"):
            continue
        if source.data == "demo" or Path(source.data).resolve() == data:
            return DataRequest(str(data) if source.data == "demo" else source.data, **found)
        other = DataRequest(source.data, **found)
        if _has_chosen(other.data, other.dialect, task):
            note(f"{other.data}: read as the data of run {run.name}, with {shlex.join(other.dialect.options)}")
            return other
    return source


def _has_chosen(data: str, dialect: Dialect, task: str) -> bool:
    """Return True if options name columns, and the first table of the data has all of them."""
    named = [*dialect.columns.values(), *dialect.ignore, *dialect.drop_empty]
    named += [condition.partition("=")[0] for condition in dialect.where]
    schema = CLIENT_TASKS[task].schema
    try:
        titles = {normalize_title(title) for title in titles_of(find_tables(data_path(data))[0], schema, dialect)}
    except DataError:
        return False
    return bool(named) and all(
        normalize_title(text) in titles or titles.issuperset(map(normalize_title, text.split("+"))) for text in named
    )


def _source_of(task: str) -> str:
    return f"{task}-{SOURCE}" if task else SOURCE
