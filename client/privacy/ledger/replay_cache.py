"""Released bytes, kept until they have arrived, so that a retry sends the same ones.

A file each, beside the ledger, written without waiting for the disk: a power cut may lose or tear it, its digest tells, and
the retry is then charged anew.
"""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from common.errors import LedgerError


class ReplayCache(Protocol):
    """Bytes by the number of their row."""

    def put(self, sequence: int, content: bytes) -> None:
        """Keep the bytes of a row."""

    def get(self, sequence: int) -> bytes | None:
        """The bytes of a row; None if they are not kept, or damaged."""

    def drop(self, sequences: Iterable[int]) -> None:
        """Forget the bytes of these rows, if they are kept."""


class KeptInMemory:
    """Bytes that end with the process: for simulations."""

    def __init__(self) -> None:
        self._contents: dict[int, bytes] = {}

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
    """Bytes in `<folder>/<sequence>`, after their SHA-256."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, sequence: int, content: bytes) -> None:
        """See `ReplayCache`.

        Raises:
            LedgerError: They cannot be written.
        """
        try:
            self.folder.mkdir(exist_ok=True, mode=0o700)
            self._path(sequence).write_bytes(hashlib.sha256(content).digest() + content)
        except OSError as error:
            raise LedgerError(
                f"{error.filename or self.folder}: {error.strerror}; make room for what is released"
            ) from None

    def get(self, sequence: int) -> bytes | None:
        """See `ReplayCache`."""
        try:
            found = self._path(sequence).read_bytes()
        except OSError:
            return None
        digest, content = found[:32], found[32:]
        return content if hashlib.sha256(content).digest() == digest else None

    def drop(self, sequences: Iterable[int]) -> None:
        """See `ReplayCache`."""
        with suppress(OSError):  # what stays behind does no harm
            for name in {path.name for path in self.folder.iterdir()} & {str(sequence) for sequence in sequences}:
                (self.folder / name).unlink()

    def _path(self, sequence: int) -> Path:
        return self.folder / str(sequence)
