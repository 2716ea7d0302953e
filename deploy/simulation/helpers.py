"""Helpers of a simulation's secure sums: their keys and states, in memory or in the folder of the run."""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from flwr.app import Message

from client.checks import open_node_key
from client.secure.helper.app import answer
from client.secure.helper.helper_service import HelperService
from client.secure.helper.helper_state import BOOK, book_in_memory, open_book
from common.config.run import RunConfig
from common.errors import StateError
from common.node_names import fresh_node_key
from common.secure.terms import SumTerms
from server.secure.store import SUMS, SumStore

Helper = Callable[[Message], Message]
"""Answer of a helper to a message."""

HELPERS = "helpers"
"""Folder with the states of simulated helpers, in that of the run."""


@contextmanager
def open_helpers(
    config: RunConfig, noise_seed: int | None = None, folder: Path | None = None
) -> Iterator[list[Helper]]:
    """Yield the helpers `helper-1`, `helper-2`, … of a run with trust `helpers`; none in other runs.

    Args:
        config: Configuration of the run.
        noise_seed: Root seed of reproducible noise, which gives no protection; None draws fresh noise.
        folder: Folder of their states and keys; None keeps them in memory.
    """
    number = config.secure_sums.helpers if config.privacy.trust == "helpers" else 0
    names = [f"helper-{k}" for k in range(1, number + 1)]
    services = [_open_helper(name, noise_seed, folder and folder / name) for name in names]
    try:
        yield [partial(answer, service) for service in services]
    finally:
        for service in services:
            service.state.close()


def go_back(folder: Path, run: str, after: int) -> None:
    """Forget the server's sums of rounds after this one, and let helpers open those without noise again.

    Clients that train a round again mask the same numbers anew. A sum with noise stays with its first set, whose replies are
    sent again as they were.
    """
    SumStore(folder / SUMS, run).clear_after(after)
    for path in (folder / HELPERS).glob(f"*/{BOOK}"):
        try:
            with closing(sqlite3.connect(path)) as db, db:
                db.execute("DELETE FROM sums WHERE round > ? AND json_extract(terms, '$.noise') = 0", (after,))
        except sqlite3.Error as error:
            raise StateError(f"{path} is damaged ({error})") from None


def _open_helper(name: str, noise_seed: int | None, folder: Path | None) -> HelperService:
    key = open_node_key(None, folder) if folder else fresh_node_key()
    sums = open_book(folder) if folder else book_in_memory()
    if noise_seed is None:
        return HelperService(name, key, sums)

    def noise_key(terms: SumTerms) -> bytes:
        return hashlib.sha256(f"{noise_seed}|{name}|{terms.round}|{terms.channel}".encode()).digest()

    return HelperService(name, key, sums, noise_key=noise_key)
