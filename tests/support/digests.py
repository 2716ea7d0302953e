"""Digest of a data set: type, shape and bytes of everything in its units, and its vocabulary."""

import dataclasses
import hashlib
from collections.abc import Iterator

import numpy as np

from client.data.dataset import Dataset, Unit
from common.tasks.vocabulary import Vocabulary


def digest(dataset: Dataset[Vocabulary, Unit]) -> str:
    """Return 16 hexadecimal digits of a SHA-256 over units and vocabulary; notes do not count."""
    whole = hashlib.sha256(dataset.vocabulary.to_json().encode())
    for part in _parts(dataset.units):
        whole.update(len(part).to_bytes(8))
        whole.update(part)
    return whole.hexdigest()[:16]


def _parts(value: object) -> Iterator[bytes]:
    match value:
        case np.ndarray() | np.generic():
            array = np.ascontiguousarray(value)
            yield f"{array.dtype.str} {array.shape}".encode()
            yield array.tobytes()
        case tuple():
            yield f"{len(value)} parts".encode()
            for part in value:
                yield from _parts(part)
        case str() | int() | float():
            yield f"{type(value).__name__} {value!r}".encode()
        case _ if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                yield from _parts(getattr(value, field.name))
        case None:  # a field that most data leave out
            return
        case _:
            raise TypeError(type(value))
