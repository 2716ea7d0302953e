"""What a client keeps between rounds: control variates, moments, pending increments; private, on its own disk.

A file is replaced whole (write, fsync, rename), so a crash leaves the old state or the new one. It stands under the
client's name and the fingerprint of its data: other data, other state.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from client.stacked_tensors import Tensors
from common.errors import StateError, WireError
from common.files import write_atomically

ABOUT = "client.json"


@dataclass(frozen=True)
class ClientMemory:
    """A client's memory of one run."""

    round: int = 0
    """The last round it trained in, 0 before the first."""
    groups: dict[str, Tensors] = field(default_factory=dict)
    """Named groups of tensors; a missing or empty group is absent."""


class Store(Protocol):
    """Where memories and documents of runs are kept."""

    def load(self, run: str) -> ClientMemory:
        """Memory of that run; an empty one before the first round."""

    def save(self, run: str, memory: ClientMemory) -> None:
        """Replace the memory of that run, durably."""

    def read(self, run: str, name: str) -> bytes:
        """A document of that run; empty if there is none."""

    def write(self, run: str, name: str, content: bytes) -> None:
        """Replace a document of that run, durably."""


class MemoryStore:
    """State that ends with the process: for simulations."""

    def __init__(self) -> None:
        self._memories: dict[str, ClientMemory] = {}
        self._documents: dict[tuple[str, str], bytes] = {}

    def load(self, run: str) -> ClientMemory:
        """See `Shop`."""
        return self._memories.get(run, ClientMemory())

    def save(self, run: str, memory: ClientMemory) -> None:
        """See `Shop`."""
        self._memories[run] = memory

    def read(self, run: str, name: str) -> bytes:
        """See `Shop`."""
        return self._documents.get((run, name), b"")

    def write(self, run: str, name: str, content: bytes) -> None:
        """See `Shop`."""
        self._documents[run, name] = content


class DiskStore:
    """State under `<root>/<run>/`, readable by its owner only."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def load(self, run: str) -> ClientMemory:
        """See `Shop`.

        Raises:
            StateError: The file is not readable as a memory.
        """
        path = self._folder(run) / "memory.safetensors"
        if not path.exists():
            return ClientMemory()
        try:
            with safe_open(path, framework="pt") as file:
                groups: dict[str, Tensors] = {}
                for key in file.keys():  # noqa: SIM118 - safe_open is no mapping
                    group, _, name = key.partition("/")
                    groups.setdefault(group, {})[name] = file.get_tensor(key)
                return ClientMemory(int(json.loads((file.metadata() or {})["memory"])["round"]), groups)
        except (SafetensorError, KeyError, ValueError) as error:
            raise StateError(
                f"{path} is no client state ({error}); move it away to start this run's state anew"
            ) from None

    def save(self, run: str, memory: ClientMemory) -> None:
        """See `Shop`."""
        flat = {f"{group}/{n}": t.contiguous() for group, named in memory.groups.items() for n, t in named.items()}
        self.write(run, "memory.safetensors", save(flat, {"memory": json.dumps({"round": memory.round})}))

    def read(self, run: str, name: str) -> bytes:
        """See `Shop`."""
        path = self._folder(run) / name
        return path.read_bytes() if path.exists() else b""

    def write(self, run: str, name: str, content: bytes) -> None:
        """See `Shop`."""
        folder = self._folder(run)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(folder / name, content, mode=0o600)

    def describe(self, about: Mapping[str, Any]) -> None:
        """Note whose state this is, for the owner: what runs here are found by once the data have changed."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(self.root / ABOUT, json.dumps(about).encode(), mode=0o600)

    def about(self) -> dict[str, Any]:
        """What `describe` noted; empty where nothing was.

        Raises:
            StateError: The note is damaged.
        """
        path = self.root / ABOUT
        try:
            return dict(json.loads(path.read_bytes())) if path.exists() else {}
        except (ValueError, TypeError) as error:
            raise StateError(f"{path} is damaged ({error}); delete it, the client writes it anew") from None

    def _folder(self, run: str) -> Path:
        """A run's name comes from the server and must not lead out of the root."""
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", run):
            raise WireError(f"{run!r} is no name of a run")
        return self.root / run
