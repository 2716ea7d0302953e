"""State of clients that a copy of this process has trained, in memory that both share."""

import json
import mmap
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save

from client.state import ClientMemory, StackedRow
from client.training.participant import Participant
from client.training.stacks import Tensors
from common.errors import RunError

_ALIGNED = 64


class SharedMemory:
    """Memory of one block's stacked state; the system provides pages when they are first written.

    Args:
        size: Bytes.
        folder: Folder of a nameless file that holds it, which ends with the process; None for main memory.
    """

    def __init__(self, size: int, folder: Path | None = None) -> None:
        self._size, self._folder, self._used = size, folder, 0
        self._pages = _map_file(size, folder) if folder else _map_memory(size)

    def apart(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor that a `write` does not change: a copy of one that lies here."""
        start = self._pages.data_ptr()
        return tensor.clone() if start <= tensor.data_ptr() < start + self._size else tensor

    def write(self, groups: dict[str, Tensors]) -> list[list[Any]]:
        """Write tensors; return a description with which `read` finds them.

        Raises:
            RunError: They do not fit, or the disk is full.
        """
        layout: list[list[Any]] = []
        offset = 0
        for group, tensors in groups.items():
            for name, tensor in tensors.items():
                dtype, shape = str(tensor.dtype).removeprefix("torch."), list(tensor.shape)
                layout.append([group, name, dtype, shape, offset])
                offset += -(-tensor.nbytes // _ALIGNED) * _ALIGNED
        self._allocate(offset)
        for group, name, *form in layout:
            self._view(*form).copy_(groups[group][name])
        return layout

    def read(self, layout: Sequence[Sequence[Any]]) -> dict[str, Tensors]:
        """Return the tensors, as views."""
        groups: dict[str, Tensors] = {}
        for group, name, dtype, shape, offset in layout:
            groups.setdefault(group, {})[name] = self._view(dtype, shape, offset)
        return groups

    def _allocate(self, size: int) -> None:
        """Check that this many bytes fit; writing beyond the end of a full disk would end the process."""
        if size > self._size:
            raise RunError(f"state of clients exceeds {self._size:,} bytes; continue with --workers 1")
        if self._folder and size - self._used > shutil.disk_usage(self._folder).free:
            raise RunError(f"the disk of {self._folder} is full; continue with --resume, without --state-on-disk")
        self._used = max(self._used, size)

    def _view(self, dtype: str, shape: Sequence[int], offset: int) -> torch.Tensor:
        kind = getattr(torch, dtype)
        count = int(torch.Size(shape).numel()) * kind.itemsize
        return self._pages[offset : offset + count].view(kind).view(*shape)


def _map_memory(size: int) -> torch.Tensor:
    flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return torch.frombuffer(mmap.mmap(-1, size, flags=flags), dtype=torch.uint8)


def _map_file(size: int, folder: Path) -> torch.Tensor:
    with tempfile.NamedTemporaryFile(dir=folder) as file:  # only its name goes; the pages stay while they are used
        return torch.from_file(file.name, shared=True, size=size, dtype=torch.uint8)


@dataclass(frozen=True)
class TrainedState:
    """State of a block's clients after a round, without that in shared memory.

    Args:
        layout: Description of the stacked state.
        clients: Number of clients in it.
        places: Client -> round and place in the stack; -1: only its groups in `single` hold.
        single: Groups of single clients, and of those that may be left out, as `client/group/name`.
    """

    layout: list[list[Any]]
    clients: int
    places: dict[int, tuple[int, int]]
    single: Tensors

    def to_bytes(self) -> bytes:
        """Return the state in the form that `from_bytes` reads."""
        about = {"layout": self.layout, "clients": self.clients, "places": [[k, *v] for k, v in self.places.items()]}
        return save(self.single, {"about": json.dumps(about)})

    @staticmethod
    def from_bytes(content: bytes) -> "TrainedState":
        """Return the state; inverse of `to_bytes`."""
        about = json.loads(json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]["about"])
        places = {k: (number, index) for k, number, index in about["places"]}
        return TrainedState(about["layout"], about["clients"], places, load(content))


def share_state(
    participants: Sequence[Participant], before: Sequence[ClientMemory], memory: SharedMemory
) -> TrainedState:
    """Write the state that clients have after training into shared memory.

    Clients that did not train, whose earlier state the memory may have held, keep it as a copy.

    Args:
        participants: The clients.
        before: Their state before they trained.
        memory: Memory of their block.
    """
    after = [p.store.load(p.run) for p in participants]
    changed = [new is not old for new, old in zip(after, before, strict=True)]
    stacks = [m.groups for m, is_new in zip(after, changed, strict=True) if is_new and isinstance(m.groups, StackedRow)]
    places: dict[int, tuple[int, int]] = {}
    single: Tensors = {}
    for k, (one, is_new) in enumerate(zip(after, changed, strict=True)):
        row = one.groups if is_new and isinstance(one.groups, StackedRow) else None
        if is_new or one.round:
            places[k] = one.round, -1 if row is None else row.index
        if row is None or row.alone:
            single |= {f"{k}/{g}/{n}": t.clone() for g, named in one.groups.items() for n, t in named.items()}
    stacked = stacks[0].stacked if stacks else {}
    layout = memory.write({g: {n: memory.apart(t) for n, t in named.items()} for g, named in stacked.items()})
    return TrainedState(layout, stacks[0].clients if stacks else 0, places, single)


def adopt_state(participants: Sequence[Participant], state: TrainedState, memory: SharedMemory) -> None:
    """Give the clients the state that a copy of this process has trained."""
    stacked, alone = memory.read(state.layout), dict[int, dict[str, Tensors]]()
    for key, tensor in state.single.items():
        client, group, name = key.split("/", 2)
        alone.setdefault(int(client), {}).setdefault(group, {})[name] = tensor
    for k, (number, index) in state.places.items():
        single = alone.get(k, {})
        groups = StackedRow(stacked, index, state.clients, single) if index >= 0 else single
        participants[k].store.save(participants[k].run, ClientMemory(number, groups))
