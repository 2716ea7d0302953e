"""Folder of snapshots: the state of all clients after a round, whole or not there."""

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from client.snapshot.documents import Documents, read_documents, write_documents
from client.snapshot.files import StoredFile, read_private, write_private
from client.snapshot.shard import Shard, pack, read_shards, write_shards
from common.errors import StateError
from common.files import sync_folder

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
        place = self.path / str(manifest.round)
        part = place.with_suffix(".part")
        self.path.mkdir(mode=0o700, exist_ok=True)
        remove(part)
        try:
            part.mkdir(mode=0o700)
            files = dict(write(part))
            write_private(part / MANIFEST, _FORM.dump_json(Manifest(**{**vars(manifest), "files": files})))
            sync_folder(part)
            remove(place)
            part.rename(place)
            sync_folder(self.path)
        except OSError:
            remove(part)
            raise
        for other in self.path.iterdir():
            if other != place and (other.name.isdecimal() or other.suffix == ".part"):
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
        place = self.path / str(wanted.round)
        found = self._manifest(place)
        for name, noun in _NOUNS.items():
            if getattr(wanted, name) not in ("", getattr(found, name)):
                raise StateError(f"{place / MANIFEST} is of another {noun}")
        shards = [
            shard
            for name, stored in found.files.items()
            if name != DOCUMENTS
            for shard in read_shards(place / name, stored)
        ]
        if DOCUMENTS not in found.files:
            raise StateError(f"{place / MANIFEST} names no {DOCUMENTS}")
        return found, ClientsState(shards, read_documents(place / DOCUMENTS, found.files[DOCUMENTS]))

    def _manifest(self, place: Path) -> Manifest:
        for folder in (self.path, place):
            if folder.is_symlink() or not folder.is_dir():
                raise StateError(f"{folder} is no folder")
        content = read_private(place / MANIFEST)
        try:
            found = _FORM.validate_json(content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise StateError(f"{place / MANIFEST} is damaged ({first['msg']})") from None
        for name in found.files:
            if Path(name).name != name:
                raise StateError(f"{place / MANIFEST} names a file outside its folder")
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
