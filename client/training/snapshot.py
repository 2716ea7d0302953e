"""Snapshot of the state of all clients after a round, whole or not there."""

import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass
from safetensors import SafetensorError
from safetensors.numpy import load, save

from client.state import ClientMemory, MemoryStore, StackedRow
from client.training.shards import Shard, StoredFile, pack, read_private, read_shards, write_private, write_shards
from client.training.stacks import Tensors, own_rows_of, row, stack
from common.arrays import Arrays
from common.errors import StateError
from common.files import sync_folder

NONE = -1
"""Place of a document that a client does not have."""

Documents = Sequence[Mapping[str, bytes]]
"""Documents of each client by name."""


def write_documents(path: Path, documents: Documents) -> StoredFile:
    """Write the documents as a new file, and flush it to disk."""
    names = sorted({name for one in documents for name in one})
    places: dict[bytes, int] = {}
    index = [[places.setdefault(one[n], len(places)) if n in one else NONE for n in names] for one in documents]
    arrays: Arrays = {
        "names": np.frombuffer(json.dumps(names).encode(), np.uint8),
        "content": np.frombuffer(b"".join(places), np.uint8),
        "ends": np.cumsum([len(content) for content in places], dtype=np.int64),
        "index": np.array(index, np.int64).reshape(len(documents), len(names)),
    }
    return write_private(path, save(arrays))


def read_documents(path: Path, stored: StoredFile) -> list[dict[str, bytes]]:
    """Return the documents of each client; clients with equal ones share their content.

    Raises:
        StateError: The file is missing, a link, damaged, or holds no documents.
    """
    stored_content = read_private(path, stored)
    try:
        arrays = load(stored_content)
        names, content = json.loads(arrays["names"].tobytes()), arrays["content"].tobytes()
        ends = arrays["ends"].tolist()
        contents = [content[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        rows = arrays["index"].tolist()
        return [{n: contents[k] for n, k in zip(names, row, strict=True) if k != NONE} for row in rows]
    except (SafetensorError, ValueError, KeyError, IndexError) as error:
        raise StateError(f"{path} holds no documents of clients ({error})") from None


MANIFEST, DOCUMENTS = "manifest.json", "documents.safetensors"


@dataclass(frozen=True)
class ClientsState:
    """State of all clients of a run between two rounds.

    Args:
        shards: State of the clients that have some.
        documents: Documents of each client.
    """

    shards: Sequence[Shard] = ()
    documents: Documents = ()

    @property
    def bytes(self) -> int:
        """Size of the tensors."""
        return sum(shard.bytes for shard in self.shards)


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid", ser_json_inf_nan="constants"))
class Manifest:
    """Origin and files of a snapshot.

    Args:
        run: Name of the run.
        round: Number of rounds done.
        model: SHA-256 of the server's model after that round.
        layout: SHA-256 of the clients and of the names of their data, in order.
        lengths: Typical lengths of the last round's replies, where they are summed in blocks.
        releases: Number of releases in the clients' privacy ledgers, which are beside the snapshots.
        files: Size and digest of each file.
        version: Version of the format.
    """

    run: str
    round: int
    model: str
    layout: str
    releases: int = 0
    lengths: dict[str, float] = field(default_factory=dict)
    files: dict[str, StoredFile] = field(default_factory=dict)
    version: Literal[1] = 1


_FORM = TypeAdapter(Manifest)

Write = Callable[[Path], Mapping[str, StoredFile]]
"""Writes the files of a snapshot into a folder and returns them by name."""


class SnapshotFolder:
    """Snapshots `<path>/<round>/`; a folder `<round>.part` is one that was not finished.

    Args:
        path: The folder; the first snapshot creates it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def rounds(self) -> list[int]:
        """Return the rounds of complete snapshots, ascending."""
        return sorted(int(path.name) for path in self.path.glob("*") if path.name.isdecimal())

    def write(self, manifest: Manifest, write: Write) -> None:
        """Write a snapshot with the files of `write`, then remove all others.

        Raises:
            OSError: The disk is full or not writable; an older snapshot stays.
        """
        folder = self.path / str(manifest.round)
        part = folder.with_suffix(".part")
        self.path.mkdir(mode=0o700, exist_ok=True)
        remove(part)
        try:
            part.mkdir(mode=0o700)
            files = dict(write(part))
            write_private(part / MANIFEST, _FORM.dump_json(Manifest(**{**vars(manifest), "files": files})))
            sync_folder(part)
            remove(folder)
            part.rename(folder)
            sync_folder(self.path)
        except OSError:
            remove(part)
            raise
        for other in self.path.iterdir():
            if other != folder and (other.name.isdecimal() or other.suffix == ".part"):
                remove(other)

    def clear(self, keep: Collection[str] = ()) -> None:
        """Remove the folder, except files of these names."""
        if self.path.is_symlink() or not self.path.exists():
            remove(self.path)
            return
        for other in self.path.iterdir():
            if other.name not in keep:
                remove(other)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    def read(self, wanted: Manifest) -> tuple[Manifest, ClientsState]:
        """Return the manifest of a round's snapshot, and the state in its files.

        Args:
            wanted: Expected run, round, model and layout; an empty one may be any.

        Raises:
            StateError: The snapshot is damaged, or of another run, round, model or other clients.
        """
        folder = self.path / str(wanted.round)
        found = self._manifest(folder)
        for name, noun in _NOUNS.items():
            if getattr(wanted, name) not in ("", getattr(found, name)):
                raise StateError(f"{folder / MANIFEST} is of another {noun}")
        shards = [
            shard
            for name, stored in found.files.items()
            if name != DOCUMENTS
            for shard in read_shards(folder / name, stored)
        ]
        if DOCUMENTS not in found.files:
            raise StateError(f"{folder / MANIFEST} names no {DOCUMENTS}")
        return found, ClientsState(shards, read_documents(folder / DOCUMENTS, found.files[DOCUMENTS]))

    def _manifest(self, folder: Path) -> Manifest:
        for path in (self.path, folder):
            if path.is_symlink() or not path.is_dir():
                raise StateError(f"{path} is no folder")
        content = read_private(folder / MANIFEST)
        try:
            found = _FORM.validate_json(content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise StateError(f"{folder / MANIFEST} is damaged ({first['msg']})") from None
        for name in found.files:
            if Path(name).name != name:
                raise StateError(f"{folder / MANIFEST} names a file outside its folder")
        return found


_NOUNS = {"run": "run", "round": "round", "model": "state of the server", "layout": "set of clients or of data"}


def state_files(state: ClientsState) -> Write:
    """Return the writer of a state that is whole in this process."""

    def write(folder: Path) -> dict[str, StoredFile]:
        files = {DOCUMENTS: write_documents(folder / DOCUMENTS, state.documents)}
        for number, part in enumerate(pack(state.shards)):
            name = f"{number}.safetensors"
            files[name] = write_shards(folder / name, part)
        return files

    return write


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all its files; nothing if there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


TOGETHER = 32
"""Number of clients with states of their own that a snapshot stacks."""


def dump_stores(stores: Sequence[MemoryStore], run: str) -> ClientsState:
    """Return the state of a run; states that are stacked are not copied."""
    shards = stack_memories([store.load(run) for store in stores])
    return ClientsState(shards, [store.documents(run) for store in stores])


def load_stores(state: ClientsState, stores: Sequence[MemoryStore], run: str) -> None:
    """Give the clients of a run the state that `dump_stores` returned."""
    for store, documents in zip(stores, state.documents, strict=True):
        for name, content in documents.items():
            store.write(run, name, content)
    for k, memory in memories_of(state.shards):
        stores[k].save(run, memory)


def stack_memories(memories: Sequence[ClientMemory]) -> list[Shard]:
    """Return the states of clients, of which those of equal form are stacked; inverse of `memories_of`.

    A client with a row and groups of its own is in two shards, first in that of the row.
    """
    stacked: dict[int, list[int]] = defaultdict(list)
    alike: dict[object, list[int]] = defaultdict(list)
    for k, memory in enumerate(memories):
        if isinstance(memory.groups, StackedRow):
            stacked[id(memory.groups.stacked)].append(k)
        if memory.round and (not isinstance(memory.groups, StackedRow) or memory.groups.alone):
            alike[_form(memory.groups)].append(k)
    shards = [_stacked_shard(memories, clients) for clients in stacked.values()]
    for clients in alike.values():
        shards += [_shard(memories, clients[i : i + TOGETHER]) for i in range(0, len(clients), TOGETHER)]
    return shards


def memories_of(shards: Sequence[Shard]) -> Iterator[tuple[int, ClientMemory]]:
    """Yield the number and the state of each client; a later state of a client replaces an earlier one."""
    rows: dict[int, StackedRow] = {}
    for shard in shards:
        count = len(shard.clients)
        for index, (k, last) in enumerate(zip(shard.clients, shard.rounds, strict=True)):
            single = {group: row(named, 0) for group, named in shard.groups.items()} if count == 1 else {}
            groups = StackedRow(shard.groups, index, count) if shard.groups and count > 1 else single
            if k in rows:
                groups = replace(rows[k], alone=groups)
            elif isinstance(groups, StackedRow):
                rows[k] = groups
            yield k, ClientMemory(last, groups)


def _stacked_shard(memories: Sequence[ClientMemory], clients: Sequence[int]) -> Shard:
    """Return clients with one stacked state, in the order of their rows."""
    rows = {k: groups for k in clients if isinstance(groups := memories[k].groups, StackedRow)}
    clients = sorted(clients, key=lambda k: rows[k].index)
    first = rows[clients[0]]
    if [rows[k].index for k in clients] == list(range(first.clients)):
        return Shard(tuple(clients), _rounds(memories, clients), first.stacked)
    if len(clients) > 1 and (own_rows := own_rows_of(first.stacked)):
        selected = own_rows.select(first.stacked, [rows[k].index for k in clients])
        return Shard(tuple(clients), _rounds(memories, clients), selected)
    return _shard(memories, clients)


def _shard(memories: Sequence[ClientMemory], clients: Sequence[int]) -> Shard:
    """Return clients with states of equal form."""
    stacked = {group: stack([memories[k].groups[group] for k in clients]) for group in memories[clients[0]].groups}
    return Shard(tuple(clients), _rounds(memories, clients), stacked)


def _rounds(memories: Sequence[ClientMemory], clients: Sequence[int]) -> tuple[int, ...]:
    return tuple(memories[k].round for k in clients)


def _form(groups: Mapping[str, Tensors]) -> object:
    """Return what clients must have in common to be stacked."""
    return tuple((group, name, t.shape, t.dtype) for group, named in groups.items() for name, t in named.items())
