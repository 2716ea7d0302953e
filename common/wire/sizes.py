"""Sizes of records, and of arrays in a message by their shapes. Pure.

Sizes of arrays equal those of `safetensors.numpy.save`: a length in 8 bytes, a JSON header padded to multiples of 8, then
the numbers.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.arrays import Flags, Ints

CODES = {
    **{"bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "float16": "F16"},
    **{"int32": "I32", "uint32": "U32", "float32": "F32", "float64": "F64", "int64": "I64", "uint64": "U64"},
}
"""NumPy's name of a dtype -> its name in a header, in the ascending order of a file."""

_ORDER = {name: place for place, name in enumerate(CODES)}
_ENTRY = len('"":{"dtype":"","shape":[],"data_offsets":[,]},')
_TENS = 10 ** np.arange(1, 19)


class StackedArray(NamedTuple):
    """One array in each of the messages of K clients.

    Args:
        name: Name, ASCII without quotes and backslashes.
        dtype: NumPy's name of its dtype.
        present: True for each message that has it, (K,).
        rows: Length of its first dimension, (K,).
        rest: Other dimensions; None for a scalar, which has no first one.
    """

    name: str
    dtype: str
    present: Flags
    rows: Ints
    rest: tuple[int, ...] | None

    @property
    def nbytes(self) -> Ints:
        """Bytes of the numbers, (K,)."""
        return self.rows * (math.prod(self.rest or ()) * np.dtype(self.dtype).itemsize)

    @property
    def shape_length(self) -> Ints:
        """Length of the shape as text, (K,)."""
        if self.rest is None:
            return np.zeros_like(self.rows)
        return _digits(self.rows) + sum(1 + len(str(n)) for n in self.rest)


def blob_sizes(arrays: Sequence[StackedArray]) -> Ints:
    """Return the bytes of each client's arrays, (K,)."""
    header, end = np.ones_like(arrays[0].rows), np.zeros_like(arrays[0].rows)  # {} without the last comma
    for array in sorted(arrays, key=lambda array: (-_ORDER[array.dtype], array.name)):
        start, end = end, end + np.where(array.present, array.nbytes, 0)
        fixed = _ENTRY + len(array.name) + len(CODES[array.dtype])
        header += np.where(array.present, fixed + array.shape_length + _digits(start) + _digits(end), 0)
    return 8 + -(-np.maximum(header, len("{}")) // 8) * 8 + end


def _digits(numbers: Ints) -> Ints:
    return np.searchsorted(_TENS, numbers, side="right") + 1


def record_size(record: Mapping[str, Any]) -> int:
    """Return the bytes of a record's entries as Flower counts them; its own count fails on empty texts."""
    return sum(len(key) + _value_size(value) for key, value in record.items())


def _value_size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, int | float):
        return 1 if isinstance(value, bool) else 8
    return sum(map(_value_size, value)) if isinstance(value, list) else len(value.data)  # Flower's arrays
