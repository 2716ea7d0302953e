"""Where a person's own data lie once they are dealt to the clients of this machine, and what was spent of their privacy there.

They are dealt once a source and number of clients, into a folder named by the source's path: every run finds the privacy
ledgers that lie beside the shares, also after a row was added.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from client.data.dataset import AnyDataset
from client.data.read import own_tables
from client.data.sources import fingerprint, is_demo
from client.privacy.claim import read_statements
from client.privacy.ledger.locate import data_path, find_ledger, ledger_path
from client.tasks.registry import CLIENT_TASKS
from common.errors import ConfigError, DataError, LedgerError
from common.text import count
from deploy.files import write_file

DEALT = Path(".fedloom") / "dealt"
"""Folder of what `up` dealt: private."""

STATE = "state"
"""In that folder, the state of all dealt clients."""

WHERE = "people.json"
"""Who is in whose share: private."""


@dataclass(frozen=True)
class Partitioning:
    """A source dealt to so many clients.

    Args:
        root: Folder of all dealings on this machine.
        task: What the data are of.
        data: A data file or folder, read and not made.
        clients: Shares; as many as a folder has tables leave those where they are.
    """

    root: Path
    task: str
    data: str
    clients: int

    @property
    def state(self) -> Path:
        """The state folder of all dealt clients: a copy of the data, or data renamed, finds the ledgers by it."""
        return self.root / STATE

    @property
    def folder(self) -> Path:
        """Of the shares."""
        return self.root / f"{_mark(self.data)}-{self.task}-{self.clients}"

    def shares(self) -> list[Path]:
        """Each client's table."""
        return [table.resolve() for table in self._own_tables()] or self._written()

    def deal(self, parts: Sequence[AnyDataset]) -> list[Path]:
        """Write each client's part as its table, in place of an earlier one; returns `shares`.

        Raises:
            DataError: A client whose privacy was spent has nobody left.
            LedgerError: A ledger is gone, or what tells whom it counts.
        """
        if not self._own_tables():
            for share, part in zip(self.shares(), self._settled(parts), strict=True):
                draft = share.with_name(f"{os.getpid()}-{share.name}")
                draft.parent.mkdir(parents=True, exist_ok=True)
                CLIENT_TASKS[self.task].write(draft, part)
                draft.replace(share)
        return self.shares()

    def ledgers(self) -> list[Path]:
        """Those that there are, one a share at most; also of shares that were written before the folder had a table a client.

        Raises:
            LedgerError: A share had one which is gone.
        """
        return self._beside(dict.fromkeys([*self.shares(), *self._written()]))

    def require_one_budget(self) -> None:
        """Accept data of which nothing was released with noise but by these very clients.

        Raises:
            ConfigError: Something was; here the same people would have a second budget.
            LedgerError: A ledger is gone or damaged.
        """
        second = f"and dealt to {count(self.clients, 'client')} the same people would have a second budget"
        for other in self._others():
            if _released(other.ledgers()):
                told = f"--clients {other.clients}" + (f" --task {other.task}" if other.task != self.task else "")
                raise ConfigError(
                    f"privacy of {data_path(self.data)} was spent as dealt to {count(other.clients, 'client')}, {second}:"
                    f" say {told}"
                )
        if self._own_tables() and _released(self._beside(self._written())):
            raise ConfigError(
                f"privacy of {data_path(self.data)} was spent as dealt to {count(self.clients, 'client')} before it had a table"
                " for each, and by tables the same people would have a second budget: bring the folder back as it was, or"
                " train without noise"
            )
        source = data_path(self.data).resolve()
        beside = [] if self._own_tables() or not source.is_dir() else sorted(source.glob(".*.fedloom-ledger"))
        if _released(beside):
            raise ConfigError(
                f"privacy of {source} was spent by clients with a table each, {second}: bring the folder back as it was, or"
                " train without noise"
            )
        joined = [ledger_path(self.data, self.state, ""), *_of_folder(source)]
        if _released([path for path in joined if path.exists()]):
            raise ConfigError(
                f"privacy of {data_path(self.data)} was spent by a client that joined with it, {second}: join with it again"
                f" (fedloom join), or train without noise"
            )

    def _others(self) -> Iterator["Partitioning"]:
        for task, clients in sorted(
            {*_dealt(self.root, self.data), (self.task, len(own_tables(self.task, self.data)))}
        ):
            if (task, clients) != (self.task, self.clients):
                yield replace(self, task=task, clients=clients)

    def _written(self) -> list[Path]:
        """Where shares go that are no tables of the folder's own."""
        return [self.folder / f"client-{k}" / CLIENT_TASKS[self.task].table for k in range(self.clients)]

    def _beside(self, shares: Iterable[Path]) -> list[Path]:
        return [path for share in shares if (path := self._ledger(str(share))).exists()]

    def _ledger(self, share: str) -> Path:
        if not os.path.exists(share):
            return ledger_path(share, self.state, "")
        return find_ledger(share, self.state, fingerprint(share, (0, 1), 0))

    def _own_tables(self) -> list[Path]:
        """The tables of a folder that has one a client."""
        own = own_tables(self.task, self.data)
        return own if len(own) == self.clients else []

    def _settled(self, parts: Sequence[AnyDataset]) -> list[AnyDataset]:
        """Return the parts with every unit where it was before, if privacy was spent since: a ledger counts its units."""
        units = {unit.name: unit for part in parts for unit in part.units}
        where = {unit.name: k for k, part in enumerate(parts) for unit in part.units}
        where |= self._before() if self.ledgers() else {}
        shares = [tuple(units[name] for name in sorted(units) if where[name] == k) for k in range(self.clients)]
        for k, share in enumerate(shares):
            if not share:
                raise DataError(
                    f"partition client-{k} has no records left, but its ledger has releases; restore the removed records",
                    self.data,
                )
        write_file(self.folder / WHERE, json.dumps(where).encode(), mode=0o600, overwrite=True)
        return [replace(part, units=share) for part, share in zip(parts, shares, strict=True)]

    def _before(self) -> dict[str, int]:
        """Who was in whose share."""
        try:
            return cast(dict[str, int], json.loads((self.folder / WHERE).read_text("utf-8")))
        except (OSError, ValueError):
            raise LedgerError(
                f"{self.folder / WHERE}, which says whose privacy each client spent, is gone or damaged; put it back."
                " Nothing is released without it"
            ) from None


def require_unpartitioned(root: Path, data: str) -> None:
    """Accept data for a client that has all of them, if no client was dealt a part and released anything of it.

    Raises:
        ConfigError: One was; here the same people would have a second budget.
        LedgerError: A ledger is gone or damaged.
    """
    if not is_demo(data) and _released(dealt_ledgers(root, data)):
        raise ConfigError(
            f"privacy of {data_path(data)} was spent by clients that `fedloom up` dealt it to, and with all of it the same"
            " people would have a second budget: train with `fedloom up` again"
        )


def dealt_ledgers(root: Path, data: str) -> list[Path]:
    """The ledgers of all that a source was dealt to, of the tables of a folder, and of the folder of a table.

    Raises:
        LedgerError: One is gone.
    """
    source = data_path(data).resolve()
    beside = sorted(source.glob(".*.fedloom-ledger")) if source.is_dir() else _of_folder(source)
    dealings = [Partitioning(root, task, data, clients) for task, clients in sorted(_dealt(root, data))]
    return beside + [path for dealing in dealings for path in dealing.ledgers()]


def _of_folder(table: Path) -> list[Path]:
    """The ledger of a client that joined with the whole folder of a table, if there is one."""
    whole = table.resolve().parent / ".fedloom" / "ledger"
    return [whole] if table.is_file() and whole.is_file() else []


def _dealt(root: Path, data: str) -> set[tuple[str, int]]:
    """The tasks and numbers of clients that a source was dealt for."""
    marks = [folder.name.split("-") for folder in root.glob(f"{_mark(data)}-*-*")]
    return {(task, int(clients)) for _, task, clients in marks}


def _mark(data: str) -> str:
    return hashlib.sha256(bytes(data_path(data).resolve())).hexdigest()[:16]


def _released(ledgers: Sequence[Path]) -> bool:
    return any(one.runs for path in ledgers for one in read_statements(path))
