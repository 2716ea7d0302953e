"""Client states of a hub in blocks: one file, and one fsync, for clients that trained together."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file
from safetensors.torch import load

from client.state import ClientMemory, DiskStore, Store, run_folder
from client.training.snapshot import memories_of, read_private, shard_arrays, shards_of, stack_memories
from common.arrays import Arrays
from common.errors import StateError
from common.files import FORMAT, check_format, put_in_place

FOLDER = "hosted"
"""Folder with the blocks of each hub in a state folder."""

CLIENTS = "clients"
"""Array of a block beside its states: JSON of the clients' names, since format 2 with the version."""


DIGITS, SUFFIX = 9, ".safetensors"
"""Form of a block's name: its number, then the suffix."""

DRAFT = ".draft"
"""Name of a block that is being written; files with a dot do not outlast the next block."""


@dataclass
class _Block:
    """File of client states.

    Args:
        written: Number of clients in it.
        newest: Those of them that no later block has.
    """

    written: int
    newest: set[str]


class StateBlocks:
    """States of a hub's clients under `<folder>/<run>/`.

    Blocks are numbered, and the newest one with a client has its state. A block is whole or not there, and stays until later
    blocks have all its clients. The states of one run are in memory.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._run = folder, ""
        self._stored, self._waiting = dict[str, ClientMemory](), dict[str, ClientMemory]()
        self._blocks: dict[int, _Block] = {}

    def load(self, run: str, client: str) -> ClientMemory:
        """Return the state of a client; empty if it has none.

        Raises:
            StateError: A block is damaged, or of a newer program.
        """
        self._open(run)
        return self._waiting.get(client) or self._stored.get(client) or ClientMemory()

    def save(self, run: str, client: str, memory: ClientMemory) -> None:
        """Replace the state of a client in memory; `flush` stores it."""
        self._open(run)
        self._waiting[client] = memory

    def flush(self) -> None:
        """Store the states that were replaced, as one block.

        Raises:
            StateError: They cannot be written; the stored ones hold.
        """
        waiting, self._waiting = self._waiting, {}
        if not waiting:
            return
        few = (block.newest for block in self._blocks.values() if 2 * len(block.newest) < block.written)
        block = {name: self._stored[name] for newest in few for name in newest} | waiting
        number, folder = max(self._blocks, default=0) + 1, run_folder(self.folder, self._run)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            save_file(_pack(block), draft := folder / DRAFT)
            put_in_place(draft, _path(folder, number))
        except (OSError, SafetensorError) as error:
            raise StateError(f"{folder}: the client states cannot be written ({error})") from error
        self._add(number, block)
        old = [number for number, block in self._blocks.items() if not block.newest]
        for path in (*(_path(folder, number) for number in old), *folder.glob(".*")):  # and what a kill left behind
            with suppress(OSError):  # a file that stays does no harm
                path.unlink()
        for number in old:
            del self._blocks[number]

    def _open(self, run: str) -> None:
        if run == self._run:
            return
        folder = run_folder(self.folder, run)
        self.flush()
        self._run, self._stored, self._blocks = "", {}, {}
        for path in sorted(folder.glob("[0-9]" * DIGITS + SUFFIX)):
            self._add(int(path.stem), _unpack(path))
        self._run = run

    def _add(self, number: int, memories: Mapping[str, ClientMemory]) -> None:
        for block in self._blocks.values():
            block.newest -= memories.keys()
        self._blocks[number] = _Block(len(memories), {*memories})
        self._stored |= memories


open_blocks = cache(StateBlocks)
"""Open the blocks that all clients of a hub share."""


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number:0{DIGITS}}{SUFFIX}"


def _pack(memories: Mapping[str, ClientMemory]) -> Arrays:
    about = json.dumps({FORMAT: 2, CLIENTS: [*memories]}).encode()
    return {CLIENTS: np.frombuffer(about, np.uint8), **shard_arrays(stack_memories([*memories.values()]))}


def _unpack(path: Path) -> dict[str, ClientMemory]:
    content = read_private(path)
    try:
        arrays = load(content)
        about = json.loads(arrays.pop(CLIENTS).numpy().tobytes())
        names = about if check_format(path, 1 if isinstance(about, list) else about[FORMAT], 2) == 1 else about[CLIENTS]
        return {str(names[k]): memory for k, memory in memories_of(shards_of(arrays))}
    except (SafetensorError, ValueError, KeyError, IndexError, TypeError) as error:
        raise StateError(
            f"{path} holds no client states ({error}); move it away to start its clients with new states"
        ) from None


class HostedStore(DiskStore):
    """Store of a client of a hub; nothing may be sent before `flush_all`."""

    def __init__(self, root: Path, blocks: StateBlocks) -> None:
        super().__init__(root)
        self.blocks = blocks

    def load(self, run: str) -> ClientMemory:
        """Return the state of a run, as in `Store`; that of a client which had a node of its own continues."""
        memory = self.blocks.load(run, _name(self.root))
        return memory if memory.round else super().load(run)

    def save(self, run: str, memory: ClientMemory) -> None:
        """Replace the state of a run in memory."""
        self.blocks.save(run, _name(self.root), memory)


def flush_all(stores: Mapping[str, Store]) -> dict[str, Exception]:
    """Write the states that changed; return client -> error for those that could not be written."""
    hosted = {name: store.blocks for name, store in stores.items() if isinstance(store, HostedStore)}
    errors: dict[StateBlocks, Exception] = {}
    for blocks in {*hosted.values()}:
        try:
            blocks.flush()
        except StateError as error:
            errors[blocks] = error
    return {name: errors[blocks] for name, blocks in hosted.items() if blocks in errors}


def load_stored(root: Path, run: str) -> ClientMemory:
    """Return the state of a client in its folder, whether it has a node of its own or is hosted.

    Raises:
        StateError: The state is damaged.
    """
    hubs = (root.parents[1] / FOLDER).glob("*")
    states = [DiskStore(root).load(run), *(StateBlocks(hub).load(run, _name(root)) for hub in hubs)]
    return max(states, key=lambda memory: memory.round)


def _name(root: Path) -> str:
    """Return the name of a client's folder in its state folder, which depends on its data."""
    return f"{root.parent.name}/{root.name}"
