"""State of a simulation: snapshots of its clients with the server's checkpoint, and their ledgers."""

import hashlib
import logging
import os
import shutil
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from client.data.dataset import AnyDataset
from client.privacy.ledger.ledger import LedgerCopy
from client.training.comparison import MEASURED, Measured, from_document
from client.training.snapshot import ClientsState, Manifest, Shard, SnapshotFolder, dump_stores, load_stores
from common.arrays import sha256
from common.config.run import RunConfig
from common.contribution import Lengths
from common.errors import LedgerError, StateError
from common.files import sync_folder
from common.privacy.options import Unit
from deploy.simulation.clients import SharedStore, open_sessions
from deploy.simulation.grid import InProcessGrid, SimulationEngine
from deploy.simulation.helpers import HELPERS, go_back, make_helpers
from server.record.folder import RunDirectory, replay_after
from server.record.journal import restore
from server.record.result import Result
from server.round.state import RunState
from server.run import run

EVERY_ROUND_BYTES = 256 * 2**20
"""Size of the state up to which a snapshot follows every round."""

SHARE = 10.0
"""Pause between two snapshots of a larger state, in times of what the last one took."""

DRAWN = "noise"
"""Name of a document: number of seeded generators of noise that a client has used."""

log = logging.getLogger("fedloom.server")


@dataclass(frozen=True)
class KeptState:
    """Treatment of the clients' state by one command.

    Args:
        forget: A resumed run starts it anew.
        keep: It stays after the last round, for further rounds.
        every: Number of rounds between two snapshots; 0 for none, None chooses. With noise, every round has one.
        on_disk: A large population's state is in files while it trains.
    """

    forget: bool = False
    keep: bool = False
    every: int | None = None
    on_disk: bool = False


REMOVED = KeptState()
"""Resumed where it was, and removed at the end."""


LEDGERS = "ledgers.sqlite"
MARK = 0x666C736C  # application id of the file

_SCHEMA = f"""
PRAGMA application_id = {MARK};
CREATE TABLE run (name TEXT NOT NULL);
CREATE TABLE ledgers (client INTEGER, unit TEXT, sequence INTEGER, content BLOB, digest BLOB, PRIMARY KEY (client, unit));
CREATE TABLE cached (client INTEGER, unit TEXT, sequence INTEGER, content BLOB, digest BLOB);
CREATE INDEX place ON cached (client, unit);
CREATE TABLE noise (client INTEGER PRIMARY KEY, drawn INTEGER);
"""


class LedgerFile:
    """Copy of all clients' ledgers, with the replies that a repeated round sends again.

    It is written before the server has a reply.
    """

    def __init__(self, folder: Path, run: str, stores: Sequence[SharedStore]) -> None:
        self.path, self._run, self._stores = folder / LEDGERS, run, stores
        self._written: dict[tuple[int, Unit], int] = {}
        self._drawn: dict[int, int] = {}

    @property
    def releases(self) -> int:
        """Number of releases in the file."""
        return sum(self._written.values())

    def commit(self) -> None:
        """Write the ledgers with new releases durably.

        Raises:
            LedgerError: The file cannot be written.
        """
        for k, drawn in self._drawn.items():  # replies that were sent again drew no noise
            if noise := self._stores[k].noise:
                noise.drawn = max(noise.drawn, drawn)
        self._drawn = {}
        found = {(k, unit): n for k, store in enumerate(self._stores) for unit, n in store.ledgers.sequences().items()}
        if new := {ledger: n for ledger, n in found.items() if n != self._written.get(ledger, 0)}:
            with self._writing() as db:
                for ledger, sequence in new.items():
                    self._write(db, *ledger, sequence)
            self._written |= new

    def restore(self, at_least: int) -> None:
        """Continue the ledgers in the file, which must hold at least this number of releases.

        Raises:
            StateError: The file is missing, a link, damaged, older, or of another run or other clients.
        """
        copies = self._read() if os.path.lexists(self.path) else {}
        if len(self._stores) <= max((k for k, _ in copies), default=-1):
            raise StateError(f"{self.path} is of another set of clients")
        if self.releases < at_least:
            raise StateError(f"{self.path} is missing, or an older copy: it has {self.releases} of {at_least} releases")
        by_client: dict[int, dict[Unit, LedgerCopy]] = defaultdict(dict)
        for (k, unit), copy in copies.items():
            by_client[k][unit] = copy
        for k, client_copies in by_client.items():
            self._stores[k].ledgers.restore(client_copies)

    def _read(self) -> dict[tuple[int, Unit], LedgerCopy]:
        if self.path.is_symlink():
            raise StateError(f"{self.path} is a link")
        try:
            with closing(self._connect()) as db:
                [(verdict,)], [(name,)] = db.execute("PRAGMA quick_check(1)"), db.execute("SELECT name FROM run")
                if verdict != "ok":
                    raise sqlite3.DatabaseError(verdict)
                if name != self._run:
                    raise StateError(f"{self.path} is of another run")
                cached: dict[tuple[int, Unit], dict[int, bytes]] = defaultdict(dict)
                for k, unit, sequence, content, digest in db.execute("SELECT * FROM cached"):
                    cached[k, unit][sequence] = self._checked(content, digest)
                rows = list(db.execute("SELECT * FROM ledgers"))
                self._written = {(k, unit): sequence for k, unit, sequence, _, _ in rows}
                self._drawn = dict(db.execute("SELECT * FROM noise"))
                return {(k, u): LedgerCopy(self._checked(*stored), cached[k, u]) for k, u, _, *stored in rows}
        except (sqlite3.Error, ValueError) as error:
            raise StateError(f"{self.path} is damaged ({error})") from None

    def _checked(self, content: bytes, digest: bytes) -> bytes:
        if hashlib.sha256(content).digest() != digest:
            raise StateError(f"{self.path} is damaged: a ledger does not match its digest")
        return content

    def _write(self, db: sqlite3.Connection, k: int, unit: Unit, sequence: int) -> None:
        def stored(content: bytes) -> tuple[bytes, bytes]:
            return content, hashlib.sha256(content).digest()

        store, copy = self._stores[k], self._stores[k].ledgers.copy(unit)
        db.execute("REPLACE INTO ledgers VALUES (?, ?, ?, ?, ?)", (k, unit, sequence, *stored(copy.content)))
        db.execute("DELETE FROM cached WHERE client = ? AND unit = ?", (k, unit))
        rows = [(k, unit, n, *stored(content)) for n, content in copy.cached.items()]
        db.executemany("INSERT INTO cached VALUES (?, ?, ?, ?, ?)", rows)
        if store.noise:
            db.execute("REPLACE INTO noise VALUES (?, ?)", (k, store.noise.drawn))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction that is on disk when the block ends; the first one creates the file."""
        try:
            if not self.path.exists():
                self._create()
            with closing(self._connect()) as db, db:
                yield db
        except (OSError, sqlite3.Error) as error:
            raise LedgerError(f"{self.path}: {error}; nothing was released; free disk space, then --resume") from None

    def _create(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self.path.with_suffix(".part")
        draft.unlink(missing_ok=True)
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(draft)) as db:
            db.executescript(_SCHEMA)
            db.execute("INSERT INTO run VALUES (?)", (self._run,))
            db.commit()
        draft.rename(self.path)
        sync_folder(self.path.parent)

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=rw", uri=True)
        if db.execute("PRAGMA application_id").fetchone() != (MARK,):
            db.close()
            raise sqlite3.DatabaseError("no file of ledgers")
        return db


class ClientSnapshots:
    """State of a run's clients on disk: the newest snapshot, and the ledgers of the moment.

    Args:
        folder: Folder of the run.
        stores: State of each client, in the order of their nodes.
        layout: Digest of the clients and their data.
        every: See `KeptState`.
    """

    def __init__(
        self, folder: RunDirectory, stores: Sequence[SharedStore], layout: str, every: int | None = None
    ) -> None:
        self._folder, self._stores, self._layout, self._every = folder, stores, layout, every
        self._run, self._snapshots = folder.path.name, SnapshotFolder(folder.clients)
        self.ledgers = LedgerFile(folder.clients, self._run, stores)
        self.lengths: Lengths = {}
        """Typical lengths of the last round's replies, where they are summed in blocks."""
        self.memories: Callable[[], Iterable[Shard] | None] = lambda: None
        """State of clients that shards have; None if it is in the stores."""
        self._state: RunState | None = None
        self._newest, self._bytes, self._end, self._took, self._is_failing = -1, 0, 0.0, 0.0, False

    def before_round(self, state: RunState) -> None:
        """Write the snapshot of a round that is done, if one is due."""
        self._state = state
        if state.round != self._newest and self._is_due(state.round):
            self._write(state)

    def conclude(self, *, keep: bool) -> None:
        """Remove the snapshots of a finished run, or keep its last state.

        State without tensors or ledgers is kept in any case: further rounds need nothing else.
        """
        checkpoint = self._folder.checkpoints.load_latest()
        size = self._bytes if self._newest > 0 else self._dump().bytes  # the last evaluation may leave models
        if checkpoint and (keep or not (size or self.ledgers.releases)):
            self._write(restore(checkpoint))
        else:
            self._snapshots.clear()

    def interrupt(self) -> None:
        """Write the snapshot of the last round on Ctrl-C, unless clients have trained since."""
        state = self._state
        is_new = state is not None and self._every != 0 and state.round != self._newest
        if state and is_new and max((n for s in self._dump().shards for n in s.rounds), default=0) <= state.round:
            self._write(state)

    def restore(self) -> int:
        """Restore the newest snapshot, and return its round, to which the server goes back.

        Raises:
            StateError: There is no snapshot, it or the file of ledgers is damaged, or they do not belong to this run.
        """
        try:
            return self._restore()
        except StateError as error:
            raise StateError(
                f"{error}; start again with a new --run-id, or use --resume {self._run} --forget-state, which starts the"
                " clients' state anew"
            ) from None

    def forget(self) -> bool:
        """Remove the snapshots; return True if the privacy ledgers go on."""
        self._snapshots.clear(keep=(self.ledgers.path.name,))
        try:
            self.ledgers.restore(0)
        except StateError as error:
            log.warning("%s; the privacy ledgers start anew", error)
            self._snapshots.clear()
            return False
        return True

    def _restore(self) -> int:
        checkpoints, rounds = self._folder.checkpoints, self._snapshots.rounds()
        newest = max(checkpoints.rounds(), default=0)
        if not rounds and newest == 0:  # killed before the first round
            self.ledgers.restore(0)
            return 0
        if not rounds:
            raise StateError(f"{self._folder.clients} has no snapshot")
        number = rounds[-1]
        is_ahead = number > newest  # the run went back on request
        model = "" if is_ahead else sha256(checkpoints.load(number).groups["model"])
        found, state = self._snapshots.read(Manifest(self._run, number, model, self._layout))
        if is_ahead and (found.releases or state.bytes):
            raise StateError(f"{self._folder.clients} holds round {number}, and the server goes back to round {newest}")
        self.ledgers.restore(found.releases)
        self._load(state)
        self._newest, self._bytes = number, state.bytes
        self.lengths.update(found.lengths)
        if newest > number:
            replay_after(self._folder, number)
        return min(number, newest)

    def _is_due(self, number: int) -> bool:
        if self._every == 0:
            return False
        if number == 0 or self.ledgers.releases:
            return True
        if self._every:
            return number % self._every == 0
        return self._bytes < EVERY_ROUND_BYTES or time.monotonic() - self._end >= SHARE * self._took

    def _write(self, state: RunState) -> None:
        start = time.monotonic()
        model, releases = sha256(state.model), self.ledgers.releases
        origin = Manifest(self._run, state.round, model, self._layout, releases, self.lengths)
        try:
            self._bytes = self._snapshots.write(origin, self._dump())
        except OSError as error:
            if not self._is_failing:
                log.warning("no snapshot of the clients' state (%s); training goes on", error.strerror or error)
            self._is_failing = True
            return
        self._newest, self._is_failing = state.round, False
        self._end = time.monotonic()
        self._took = self._end - start

    def _dump(self) -> ClientsState:
        state, shards = dump_stores(self._stores, self._run), self.memories()
        state = state if shards is None else replace(state, shards=shards)
        drawn = ({DRAWN: str(s.noise.drawn).encode()} if s.noise else {} for s in self._stores)
        documents = [{**found, **one} for found, one in zip(state.documents, drawn, strict=True)]
        return replace(state, documents=documents)

    def _load(self, state: ClientsState) -> None:
        plain = [{name: c for name, c in found.items() if name != DRAWN} for found in state.documents]
        load_stores(replace(state, documents=plain), self._stores, self._run)
        for store, client_documents in zip(self._stores, state.documents, strict=True):
            if store.noise and DRAWN in client_documents:
                store.noise.drawn = int(client_documents[DRAWN])


def layout_of(names: Sequence[Sequence[str]]) -> str:
    """Return the digest of the names of each client's units of data."""
    digest = hashlib.sha256()
    for client_names in names:
        digest.update("\n".join(client_names).encode() + b"\0")
    return digest.hexdigest()


def simulate_measured(
    config: RunConfig,
    partitions: Sequence[AnyDataset],
    runs: Path,
    *,
    together: int = 0,
    noise_seed: int | None = None,
    state: KeptState = REMOVED,
    workers: int = 1,
    device: str = "cpu",
    engine: SimulationEngine | None = None,
) -> tuple[Result, dict[str, Measured]]:
    """Train as `simulate_clients` does, with the clients' state in the run's folder.

    Returns:
        Result, and each client's measurement of the finished model.

    Raises:
        StateError: The clients' state of the resumed run is missing.
    """
    sessions, stores = open_sessions(partitions, noise_seed, device)
    folder = RunDirectory(runs, config.run_id)
    snapshots = ClientSnapshots(
        folder, stores, layout_of([[u.name for u in part.units] for part in partitions]), state.every
    )
    note = _prepare(snapshots, folder, config, state)
    states, on_disk = folder.path / HELPERS, folder.path if state.on_disk else None
    helpers = make_helpers(config, noise_seed, states)
    with InProcessGrid(
        sessions, together, snapshots.ledgers.commit, helpers, snapshots.lengths, workers, on_disk, engine
    ) as grid:
        snapshots.memories = grid.population.dump
        try:
            result = replace(run(grid, config, runs, on_round=snapshots.before_round), state=note)
        except KeyboardInterrupt:
            snapshots.interrupt()
            raise
        snapshots.conclude(keep=state.keep)
    if not state.keep:
        shutil.rmtree(states, ignore_errors=True)
    return result, {s.client: from_document(s.store.read(config.run_id, MEASURED)) for s in sessions.values()}


def _prepare(snapshots: ClientSnapshots, folder: RunDirectory, config: RunConfig, state: KeptState) -> str:
    """Restore or forget the clients' state of a resumed run; return what its result says about that."""
    newest = folder.checkpoints.load_latest() if config.resume else None
    if newest is None:
        return ""
    if not state.forget:
        done = snapshots.restore()
        after = done or -1  # the counts of round 0 precede the first snapshot
        go_back(folder.path, config.run_id, after)
        return ""
    has_ledgers = snapshots.forget()
    return f"restarted after round {newest.round}" + ("" if has_ledgers else ", with new privacy ledgers")
