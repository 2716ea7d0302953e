"""Client state between rounds: control variates, moments, pending increments; private.

It stays on the client's disk. A file is replaced as a whole (write, fsync, rename), so a crash leaves the old state or
the new one. Its folder depends on the client's name and the fingerprint of its data: other data have other state.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from client.training.stacks import TOUCHED, Tensors, at, own_rows_of
from common.errors import StateError, WireError
from common.files import FORMAT, check_format, write_atomically


@dataclass(frozen=True)
class ClientMemory:
    """State of a client in one run."""

    round: int = 0
    """Last round it trained in, 0 before the first."""
    groups: Mapping[str, Tensors] = field(default_factory=dict)
    """Named groups of tensors; a missing group equals an empty one."""


@dataclass(frozen=True, eq=False)
class StackedRow(Mapping[str, Tensors]):
    """Groups of one of the clients whose state is stacked: views, or copies of short tables.

    Args:
        stacked: Groups of all of them, K × …; those with `TOUCHED` have short tables.
        index: Number of the client among them.
        clients: Number K of clients.
        alone: Groups of this client, which replace its row if the server leaves out the round's reply; empty if it cannot.
    """

    stacked: Mapping[str, Tensors]
    index: int
    clients: int
    alone: Mapping[str, Tensors] = field(default_factory=dict)

    def __getitem__(self, group: str) -> Tensors:
        if self.alone:
            return self.alone[group]
        named, rows = self.stacked[group], own_rows_of(self.stacked)
        return rows.at(named, self.index) if rows else at(named, self.index)

    def __contains__(self, group: object) -> bool:
        return group in self._groups and group != TOUCHED

    def __iter__(self) -> Iterator[str]:
        return (group for group in self._groups if group != TOUCHED)

    def __len__(self) -> int:
        return len(self._groups) - (TOUCHED in self._groups)

    @property
    def _groups(self) -> Mapping[str, Tensors]:
        return self.alone or self.stacked


class Store(Protocol):
    """Storage of client state and of documents of runs."""

    def load(self, run: str) -> ClientMemory:
        """Return the state of a run; empty before the first round."""

    def save(self, run: str, memory: ClientMemory) -> None:
        """Replace the state of a run durably."""

    def read(self, run: str, name: str) -> bytes:
        """Return a document of a run; empty if there is none."""

    def write(self, run: str, name: str, content: bytes) -> None:
        """Replace a document of a run durably."""


class MemoryStore:
    """State that ends with the process, for simulations."""

    def __init__(self) -> None:
        self._memories: dict[str, ClientMemory] = {}
        self._documents: dict[tuple[str, str], bytes] = {}

    def load(self, run: str) -> ClientMemory:
        """Return the state of a run, as in `Store`."""
        return self._memories.get(run, ClientMemory())

    def save(self, run: str, memory: ClientMemory) -> None:
        """Replace the state of a run, as in `Store`."""
        self._memories[run] = memory

    def read(self, run: str, name: str) -> bytes:
        """Return a document of a run, as in `Store`."""
        return self._documents.get((run, name), b"")

    def write(self, run: str, name: str, content: bytes) -> None:
        """Replace a document of a run, as in `Store`."""
        self._documents[run, name] = content

    def documents(self, run: str) -> dict[str, bytes]:
        """Return all documents of a run by name."""
        return {name: content for (owner, name), content in self._documents.items() if owner == run}


class DiskStore:
    """State under `<root>/<run>/`, readable by its owner only."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def load(self, run: str) -> ClientMemory:
        """Return the state of a run, as in `Store`.

        Raises:
            StateError: The file is not a readable client state, or of a newer program.
        """
        path = self._folder(run) / "memory.safetensors"
        if not path.exists():
            return ClientMemory()
        try:
            with safe_open(path, framework="pt") as file:
                about = file.metadata() or {}
                check_format(path, about.get(FORMAT, "1"))
                groups: dict[str, Tensors] = {}
                for key in file.keys():  # noqa: SIM118 - safe_open is no mapping
                    group, _, name = key.partition("/")
                    groups.setdefault(group, {})[name] = file.get_tensor(key)
                return ClientMemory(int(json.loads(about["memory"])["round"]), groups)
        except (SafetensorError, KeyError, ValueError) as error:
            raise StateError(
                f"{path} is not a client state ({error}); move it away to start this run with a new state"
            ) from None

    def save(self, run: str, memory: ClientMemory) -> None:
        """Replace the state of a run, as in `Store`."""
        flat = {f"{g}/{n}": t.contiguous().clone() for g, named in memory.groups.items() for n, t in named.items()}
        about = {FORMAT: "1", "memory": json.dumps({"round": memory.round})}
        self.write(run, "memory.safetensors", save(flat, about))

    def read(self, run: str, name: str) -> bytes:
        """Return a document of a run, as in `Store`."""
        path = self._folder(run) / name
        return path.read_bytes() if path.exists() else b""

    def write(self, run: str, name: str, content: bytes) -> None:
        """Replace a document of a run, as in `Store`."""
        folder = self._folder(run)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(folder / name, content, mode=0o600)

    def _folder(self, run: str) -> Path:
        return run_folder(self.root, run)


def run_folder(root: Path, run: str) -> Path:
    """Return the folder of a run; its name comes from the server and must not lead out of the root.

    Raises:
        WireError: It would.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", run):
        raise WireError(f"invalid run name {run[:80]!r}; use up to 100 letters, digits, '.', '_' and '-'")
    return root / run
