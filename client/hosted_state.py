"""Client state of a hub's clients: the same files as those of single clients, written side by side."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from client.state import ClientMemory, DiskStore, Store
from common.errors import StateError

WRITERS = 16
"""Number of files that are written at a time: the waits for the disk overlap."""


class HostedStore(DiskStore):
    """State that stays in memory, and on disk after `flush`; nothing may be sent before."""

    _pending: str = ""
    _memory: tuple[str, ClientMemory] | None = None

    def load(self, run: str) -> ClientMemory:
        """Return the state of a run, as in `Store`."""
        if self._memory is None or self._memory[0] != run:
            self._memory = run, super().load(run)
        return self._memory[1]

    def save(self, run: str, memory: ClientMemory) -> None:
        """Replace the state of a run in memory, and note that the disk must follow."""
        if self._pending != run:
            self.flush()
        self._memory, self._pending = (run, memory), run

    def flush(self) -> None:
        """Write the state that changed.

        Raises:
            StateError: It cannot be written; the one on disk holds.
        """
        if not self._pending or self._memory is None:
            return
        (run, memory), self._memory, self._pending = self._memory, None, ""
        try:
            super().save(run, memory)
        except OSError as error:
            raise StateError(f"{self.root}: the client state cannot be written ({error.strerror})") from error
        self._memory = run, memory


def flush_all(stores: Mapping[str, Store]) -> dict[str, Exception]:
    """Write the states that changed; return client -> error for those that could not be written."""
    hosted = {name: store for name, store in stores.items() if isinstance(store, HostedStore)}
    with ThreadPoolExecutor(WRITERS) as writers:
        errors: Iterable[Exception | None] = writers.map(_flush, hosted.values())
        return {name: error for name, error in zip(hosted, errors, strict=True) if error}


def _flush(store: HostedStore) -> Exception | None:
    try:
        store.flush()
    except Exception as error:
        return error
    return None
