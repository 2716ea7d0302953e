"""Sizes of records, and of arrays in a message by their shapes. Pure.

Sizes of arrays equal those of `safetensors.numpy.save`: a length in 8 bytes, a JSON header padded to multiples of 8, then
the numbers.
"""

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from common.arrays import Array

CODES = {
    **{"bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "float16": "F16"},
    **{"int32": "I32", "uint32": "U32", "float32": "F32", "float64": "F64", "int64": "I64", "uint64": "U64"},
}
"""NumPy's name of a dtype -> its name in a header, in the ascending order of a file."""

_ORDER = {name: place for place, name in enumerate(CODES)}
_ENTRY = len('"":{"dtype":"","shape":[],"data_offsets":[,]},')


class Form(NamedTuple):
    """Name, dtype and shape of an array."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, name: str, array: Array) -> "Form":
        """Return the form of an array."""
        return cls(name, array.dtype.name, array.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return math.prod(self.shape) * _itemsize(self.dtype)


def blob_size(forms: Iterable[Form]) -> int:
    """Return the bytes of a file with these arrays; names are ASCII without quotes and backslashes."""
    header, end = len("{}") - len(","), 0
    for form in sorted(forms, key=lambda form: (-_ORDER[form.dtype], form.name)):
        start, end = end, end + form.nbytes
        shape = len(",".join(map(str, form.shape)))
        header += _ENTRY + len(form.name) + len(CODES[form.dtype]) + shape + len(str(start)) + len(str(end))
    header = max(header, len("{}"))
    return 8 + -(-header // 8) * 8 + end


@lru_cache
def _itemsize(dtype: str) -> int:
    return np.dtype(dtype).itemsize


def record_size(record: Mapping[str, Any]) -> int:
    """Return the bytes of a record's entries as Flower counts them; its own count fails on empty texts."""
    return sum(len(key) + _value_size(value) for key, value in record.items())


def _value_size(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_value_size, value))
    value = getattr(value, "data", value)  # Flower's arrays
    return len(value) if isinstance(value, str | bytes) else 1 if isinstance(value, bool) else 8
