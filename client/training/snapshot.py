"""Snapshot of the state of all clients after a round, whole or not there, and its files."""

import hashlib
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass
from safetensors import SafetensorError
from safetensors.numpy import load, save_file
from safetensors.torch import load as load_tensors

from client.state import ClientMemory, MemoryStore, StackedRow
from client.training.stacks import Tensors, own_rows_of, row, stack
from common.arrays import Arrays
from common.errors import StateError
from common.files import check_format, sync_folder


@dataclass(frozen=True)
class StoredFile:
    """Size and SHA-256 of a file."""

    bytes: int
    sha256: str


def write_private(path: Path, content: bytes | Arrays) -> StoredFile:
    """Write a new file and flush it to disk; arrays go there without a copy in memory."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        save_file(content, path)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
        return StoredFile(file.tell(), digest)


def read_private(path: Path, stored: StoredFile | None = None) -> bytes:
    """Return the content of a file, which must be the stored one.

    Raises:
        StateError: The file is missing, a link, truncated or altered.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            content = file.read()
    except OSError as error:
        raise StateError(f"{path} cannot be read ({error.strerror})") from None
    if stored and len(content) != stored.bytes:
        raise StateError(f"{path} has {len(content):,} bytes; its manifest names {stored.bytes:,}")
    if stored and hashlib.sha256(content).hexdigest() != stored.sha256:
        raise StateError(f"{path} is damaged, or another file than its manifest names")
    return content


MAX_BYTES = 64 * 2**20
"""Size of the tensors in one file, unless a single shard is larger."""

ABOUT = "about"
"""Group beside those of the state: numbers of a shard's clients, and the last round of each."""


@dataclass(frozen=True)
class Shard:
    """Clients whose state is stacked.

    Args:
        clients: Numbers of the clients in the run, from 0.
        rounds: Last round in which each of them trained.
        groups: Group -> name -> tensor K × …; views are fine.
    """

    clients: tuple[int, ...]
    rounds: tuple[int, ...]
    groups: Mapping[str, Tensors]

    @property
    def bytes(self) -> int:
        """Size of the tensors."""
        return sum(tensor.nbytes for named in self.groups.values() for tensor in named.values())


def pack_shards(shards: Iterable[Shard]) -> Iterator[list[Shard]]:
    """Yield the shards of each file, in order."""
    part: list[Shard] = []
    for shard in shards:
        if part and sum(one.bytes for one in part) + shard.bytes > MAX_BYTES:
            yield part
            part = []
        part.append(shard)
    if part:
        yield part


def shard_arrays(shards: Iterable[Shard]) -> Arrays:
    """Return the arrays of a file with these shards; inverse of `shards_of`."""
    arrays: Arrays = {}  # unlike tensors, several of them may share memory
    for number, shard in enumerate(shards):
        about = {"client": torch.tensor(shard.clients), "round": torch.tensor(shard.rounds)}
        for group, named in {ABOUT: about, **shard.groups}.items():
            arrays |= {f"{number}/{group}/{name}": tensor.contiguous().numpy() for name, tensor in named.items()}
    return arrays


def read_shards(path: Path, stored: StoredFile) -> list[Shard]:
    """Return the shards of a file.

    Raises:
        StateError: The file is missing, a link, damaged, or holds no shards.
    """
    content = read_private(path, stored)
    try:
        return shards_of(load_tensors(content))
    except (SafetensorError, ValueError, KeyError) as error:
        raise StateError(f"{path} holds no state of clients ({error})") from None


def shards_of(arrays: Tensors) -> list[Shard]:
    """Return the shards of a file with these arrays.

    Raises:
        ValueError: The arrays are those of another file; so does KeyError.
    """
    numbered: dict[int, dict[str, Tensors]] = defaultdict(lambda: defaultdict(dict))
    for key, tensor in arrays.items():
        number, group, name = key.split("/", 2)
        numbered[int(number)][group][name] = tensor
    return [_shard_of(dict(numbered[number])) for number in sorted(numbered)]


def _shard_of(groups: dict[str, Tensors]) -> Shard:
    about = groups.pop(ABOUT)
    return Shard(tuple(about["client"].tolist()), tuple(about["round"].tolist()), groups)


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
    return write_private(path, arrays)


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


WRITERS = 2
"""Number of files that are written at a time."""

MANIFEST, DOCUMENTS = "manifest.json", "documents.safetensors"


@dataclass(frozen=True)
class ClientsState:
    """State of all clients of a run between two rounds."""

    shards: Iterable[Shard] = ()
    documents: Documents = ()

    @property
    def bytes(self) -> int:
        """Size of the tensors; an iterator ends with it."""
        return sum(shard.bytes for shard in self.shards)


FormatVersion = Annotated[int, AfterValidator(partial(check_format, "the snapshot of the clients"))]


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
    version: FormatVersion = 1


_FORM = TypeAdapter(Manifest)


class SnapshotFolder:
    """Snapshots `<path>/<round>/`; a folder `<round>.part` is one that was not finished.

    The first snapshot creates the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def rounds(self) -> list[int]:
        """Return the rounds of complete snapshots, ascending."""
        return sorted(int(path.name) for path in self.path.glob("*") if path.name.isdecimal())

    def write(self, manifest: Manifest, state: ClientsState) -> int:
        """Write a snapshot, then remove all others; return the size of its tensors.

        Raises:
            OSError: The disk is full or not writable; an older snapshot stays.
        """
        folder = self.path / str(manifest.round)
        part = folder.with_suffix(".part")
        self.path.mkdir(mode=0o700, exist_ok=True)
        remove(part)
        try:
            part.mkdir(mode=0o700)
            files, size = write_state(part, state)
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
        return size

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

        An empty text of `wanted` stands for any.

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


def write_state(folder: Path, state: ClientsState) -> tuple[dict[str, StoredFile], int]:
    """Write the files of a state into a folder; return them by name, and the size of the tensors.

    No more shards are fetched than those of the files in work.
    """
    documents, stored, size = write_documents(folder / DOCUMENTS, state.documents), list[Future[StoredFile]](), 0

    def write(number: int, part: list[Shard]) -> StoredFile:
        return write_private(folder / f"{number}.safetensors", shard_arrays(part))

    with ThreadPoolExecutor(WRITERS) as writers:  # digests and writes release the interpreter's lock
        for number, part in enumerate(pack_shards(state.shards)):
            stored.append(writers.submit(write, number, part))
            size += sum(shard.bytes for shard in part)
            if number:
                stored[number - 1].result()
    return {DOCUMENTS: documents, **{f"{n}.safetensors": one.result() for n, one in enumerate(stored)}}, size


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all its files; nothing if there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


TOGETHER = 32
"""Number of clients with states of their own that a snapshot stacks."""


def dump_stores(stores: Sequence[MemoryStore], run: str) -> ClientsState:
    """Return the state of a run, whose shards are made one by one; states that are stacked are not copied."""
    shards = stack_memories([store.load(run) for store in stores])
    return ClientsState(shards, [store.documents(run) for store in stores])


def load_stores(state: ClientsState, stores: Sequence[MemoryStore], run: str) -> None:
    """Give the clients of a run the state that `dump_stores` returned."""
    for store, documents in zip(stores, state.documents, strict=True):
        for name, content in documents.items():
            store.write(run, name, content)
    for k, memory in memories_of(state.shards):
        stores[k].save(run, memory)


def stack_memories(memories: Sequence[ClientMemory]) -> Iterator[Shard]:
    """Yield the states of clients, of which those of equal form are stacked; inverse of `memories_of`.

    A client with a row and groups of its own is in two shards, first in that of the row.
    """
    stacked: dict[int, list[int]] = defaultdict(list)
    alike: dict[object, list[int]] = defaultdict(list)
    for k, memory in enumerate(memories):
        if isinstance(memory.groups, StackedRow):
            stacked[id(memory.groups.stacked)].append(k)
        if memory.round and (not isinstance(memory.groups, StackedRow) or memory.groups.alone):
            alike[_form(memory.groups)].append(k)
    yield from (_stacked_shard(memories, clients) for clients in stacked.values())
    for clients in alike.values():
        yield from (_shard(memories, clients[i : i + TOGETHER]) for i in range(0, len(clients), TOGETHER))


def memories_of(
    shards: Iterable[Shard], rows: dict[int, StackedRow] | None = None
) -> Iterator[tuple[int, ClientMemory]]:
    """Yield the number and the state of each client; a later state of a client replaces an earlier one.

    `rows` are those of shards before, and afterwards of these, too.
    """
    rows = {} if rows is None else rows
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
