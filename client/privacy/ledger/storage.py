"""Database and replay cache of a ledger: on disk, in memory, or continued from a copy."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from client.privacy.ledger.database import MEMORY, LedgerDatabase
from client.privacy.ledger.replay_cache import DiskReplayCache, MemoryReplayCache, ReplayCache


@dataclass(frozen=True)
class LedgerCopy:
    """Copy of a ledger in memory."""

    content: bytes
    """Content of its database."""
    cached: Mapping[int, bytes] = field(default_factory=dict)
    """Sequence number -> cached bytes."""


def open_storage(place: Path | str | LedgerCopy) -> tuple[LedgerDatabase, ReplayCache]:
    """Open an existing ledger, a new one in `MEMORY`, or a copy.

    Raises:
        LedgerError: The ledger is missing or damaged.
    """
    if isinstance(place, LedgerCopy):
        return LedgerDatabase(MEMORY, content=place.content), MemoryReplayCache(place.cached)
    cache = MemoryReplayCache({}) if place == MEMORY else DiskReplayCache(Path(f"{place}-kept"))
    return LedgerDatabase(place, secrets.token_hex(16)), cache


def copy_storage(database: LedgerDatabase, cache: ReplayCache) -> LedgerCopy:
    """Return a copy of a ledger in memory."""
    with database.reading() as db:
        sequences = [n for (n,) in db.execute("SELECT sequence FROM releases")]
    return LedgerCopy(database.content(), {n: content for n in sequences if (content := cache.get(n)) is not None})
