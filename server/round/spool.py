"""Arrays of a round's replies: in memory up to a limit, beyond it in a file without a name."""

import logging
import math
import os
import tempfile
import weakref
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from common.arrays import Array, Arrays
from server.aggregation.replies import Load

log = logging.getLogger("fedloom.server")

Forms = tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]
"""Name, dtype and shape of each array, in order."""

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
        self._forms: dict[Forms, Forms] = {}

    def store(self, arrays: Arrays) -> Load:
        """Store arrays; where the file cannot be written, they stay in memory."""
        size = sum(a.nbytes for a in arrays.values())
        if self._folder is None or size <= self._room:
            self._room -= size
            return lambda: arrays
        try:
            self._file = self._file or _NamelessFile(self._folder)
            forms = tuple((name, a.dtype, a.shape) for name, a in arrays.items())
            start = self._file.append(
                [np.ascontiguousarray(a).reshape(-1).view(np.uint8).data for a in arrays.values()]
            )
            return partial(_read, self._file, self._forms.setdefault(forms, forms), start, size)
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

    def append(self, buffers: Sequence[memoryview]) -> int:
        """Write bytes; return their start."""
        start = end = self._end
        for buffer in buffers:
            written = 0
            while written < len(buffer):
                written += os.pwrite(self.number, buffer[written:], end + written)
            end += written
        self._end = end
        return start


def _read(file: _NamelessFile, forms: Forms, start: int, size: int) -> Arrays:
    content, arrays, offset = os.pread(file.number, size, start), dict[str, Array](), 0
    for name, dtype, shape in forms:
        numbers = math.prod(shape)
        arrays[name] = np.frombuffer(content, dtype, numbers, offset).reshape(shape)
        offset += numbers * dtype.itemsize
    return arrays
