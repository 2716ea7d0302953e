"""Arrays of a round's replies: in memory up to a limit, beyond it in a file without a name."""

import logging
import os
import tempfile
import weakref
from functools import partial
from pathlib import Path

from safetensors.numpy import load, save

from common.arrays import Arrays
from server.aggregation.round_results import Load

log = logging.getLogger("fedloom.server")

MEMORY_BYTES = 256 * 2**20
"""Bytes of replies in memory."""


class Spool:
    """Store of arrays for one round.

    Args:
        folder: Folder of the file; None: all arrays stay in memory.
        most: Bytes of arrays in memory.
    """

    def __init__(self, folder: Path | None, most: int = MEMORY_BYTES) -> None:
        self._folder, self._room = folder, most
        self._file: _NamelessFile | None = None

    def store(self, arrays: Arrays) -> Load:
        """Store arrays; where the file cannot be written, they stay in memory."""
        size = sum(a.nbytes for a in arrays.values())
        if self._folder is None or size <= self._room:
            self._room -= size
            return lambda: arrays
        try:
            self._file = self._file or _NamelessFile(self._folder)
            return partial(_read, self._file, *self._file.append(save(arrays)))
        except OSError as error:
            log.warning("replies of this round stay in memory: %s: %s", self._folder, error.strerror)
            self._folder = None
            return lambda: arrays


class _NamelessFile:
    """File of one owner; it ends with its last reader, or with the process.

    Args:
        folder: Folder on its file system.
    """

    def __init__(self, folder: Path) -> None:
        file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - the finalizer closes it
        weakref.finalize(self, file.close)
        self.number, self._end = file.fileno(), 0

    def append(self, blob: bytes) -> tuple[int, int]:
        """Write bytes; return their start and number."""
        written = 0
        while written < len(blob):
            written += os.pwrite(self.number, memoryview(blob)[written:], self._end + written)
        self._end += written
        return self._end - written, written


def _read(file: _NamelessFile, start: int, size: int) -> Arrays:
    arrays: Arrays = load(os.pread(file.number, size, start))
    return arrays
