"""Client state of a hub's clients, which is written for all that trained together."""

from collections.abc import Mapping
from pathlib import Path

from client.state import ClientMemory, DiskStore, Store
from client.state_blocks import FOLDER, StateBlocks
from common.errors import StateError


class HostedStore(DiskStore):
    """Store of a client of a hub; nothing may be sent before `flush_all`.

    Args:
        root: Folder of the client, with its documents.
        blocks: States of the hub's clients.
    """

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
