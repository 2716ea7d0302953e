"""Replay cache: released bytes, stored until they have arrived, so that a retry sends identical bytes.

Each release is a file beside the ledger, written without fsync. A power cut may lose or tear it; its digest detects that,
and the retry is then charged anew.
"""

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from common.errors import LedgerError


class ReplayCache(Protocol):
    """Released bytes by the sequence number of their ledger entry."""

    def put(self, sequence: int, content: bytes) -> None:
        """Store the bytes of an entry."""

    def get(self, sequence: int) -> bytes | None:
        """Return the bytes of an entry; None if they are not stored, or damaged."""

    def drop(self, sequences: Iterable[int]) -> None:
        """Delete the bytes of these entries, if they are stored."""


class MemoryReplayCache:
    """Replay cache that ends with the process, for simulations."""

    def __init__(self, contents: Mapping[int, bytes]) -> None:
        self._contents = dict(contents)

    def put(self, sequence: int, content: bytes) -> None:
        """See `ReplayCache`."""
        self._contents[sequence] = content

    def get(self, sequence: int) -> bytes | None:
        """See `ReplayCache`."""
        return self._contents.get(sequence)

    def drop(self, sequences: Iterable[int]) -> None:
        """See `ReplayCache`."""
        for sequence in sequences:
            self._contents.pop(sequence, None)


class DiskReplayCache:
    """Replay cache in files `<folder>/<sequence>`: SHA-256 of the bytes, then the bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, sequence: int, content: bytes) -> None:
        """See `ReplayCache`.

        Raises:
            LedgerError: The file cannot be written.
        """
        try:
            self.folder.mkdir(exist_ok=True, mode=0o700)
            self._path(sequence).write_bytes(hashlib.sha256(content).digest() + content)
        except OSError as error:
            raise LedgerError(
                f"cannot write {error.filename or self.folder}: {error.strerror}; free disk space for released bytes"
            ) from None

    def get(self, sequence: int) -> bytes | None:
        """See `ReplayCache`."""
        try:
            stored = self._path(sequence).read_bytes()
        except OSError:
            return None
        digest, content = stored[:32], stored[32:]
        return content if hashlib.sha256(content).digest() == digest else None

    def drop(self, sequences: Iterable[int]) -> None:
        """See `ReplayCache`."""
        with suppress(OSError):  # a file that stays behind does no harm
            for name in {path.name for path in self.folder.iterdir()} & {str(sequence) for sequence in sequences}:
                (self.folder / name).unlink()

    def _path(self, sequence: int) -> Path:
        return self.folder / str(sequence)
