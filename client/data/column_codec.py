"""Codec of data sets for another process: columns as an outline in JSON and raw arrays.

The fields of equal objects form one column each, down to arrays, numbers and texts. Only dataclasses and vocabularies of this
installation are created on decoding.
"""

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from common.arrays import Array
from common.tasks.vocabulary import Vocabulary

Outline = dict[str, Any]
"""Description of a column: its kind, and what its arrays do not hold."""

PLAIN = (str, int, float, bool, type(None))
"""Types of values that stand in the outline itself."""


class NoColumnError(TypeError):
    """Values that have no common form as a column, such as objects of several classes."""


def encode_column(values: Sequence[Any], arrays: list[Array]) -> Outline:
    """Return the outline of a column, and append its arrays.

    Raises:
        NoColumnError: The values have no common form.
    """
    kinds = {type(value) for value in values}
    if len(kinds) == 2 and type(None) in kinds:
        filled = [value is not None for value in values]
        return {"kind": "optional", "filled": filled, "of": encode_column([v for v in values if v is not None], arrays)}
    if len(kinds) > 1:
        raise NoColumnError(f"{len(kinds)} types in one column")
    kind: type[Any] = next(iter(kinds), str)
    if kind in PLAIN:
        return {"kind": "plain", "values": list(values)}
    if issubclass(kind, (np.ndarray, np.generic)):
        return _encode_arrays(values, arrays) | {"scalar": issubclass(kind, np.generic)}
    if kind is tuple:
        arrays.append(np.array([len(value) for value in values], np.int64))
        return {"kind": "tuple", "of": encode_column([*chain.from_iterable(values)], arrays)}
    return _encode_objects(kind, values, arrays)


def decode_column(outline: Outline, read: Callable[[], Array]) -> list[Any]:
    """Return the values of a column, the inverse of `encode_column`.

    Args:
        outline: Outline of the column.
        read: Function that returns the next array, in the order of their encoding.
    """
    match outline["kind"]:
        case "optional":
            present = iter(decode_column(outline["of"], read))
            return [next(present) if filled else None for filled in outline["filled"]]
        case "arrays":
            return _decode_arrays(read(), read(), scalar=outline["scalar"])
        case "tuple":
            spans = _spans(read())
            values = decode_column(outline["of"], read)
            return [tuple(values[span]) for span in spans]
        case "vocabulary":
            return [_class_of(outline["class"]).from_json(text) for text in outline["json"]]
        case "objects":
            columns = [decode_column(column, read) for column in outline["columns"].values()]
            return [_class_of(outline["class"])(*fields) for fields in zip(*columns, strict=True)]
    return list(outline["values"])


def _encode_objects(kind: type[Any], values: Sequence[Any], arrays: list[Array]) -> Outline:
    name = f"{kind.__module__}:{kind.__qualname__}"
    if issubclass(kind, Vocabulary):
        return {"kind": "vocabulary", "class": name, "json": [value.to_json() for value in values]}
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    if not all(field.init for field in fields) or not fields or _class_of(name) is not kind:
        raise NoColumnError(f"{name} is no dataclass of a module that its fields determine")
    columns = {f.name: encode_column([getattr(value, f.name) for value in values], arrays) for f in fields}
    return {"kind": "objects", "class": name, "columns": columns}


def _encode_arrays(values: Sequence[Any], arrays: list[Array]) -> Outline:
    if len({(value.dtype, value.ndim) for value in values}) > 1 or values[0].dtype.hasobject:
        raise NoColumnError("arrays of several types, or of objects, in one column")
    arrays.append(np.array([value.shape for value in values], np.int64))
    arrays.append(np.concatenate([np.ravel(value) for value in values]))
    return {"kind": "arrays"}


def _decode_arrays(shapes: Array, content: Array, *, scalar: bool) -> list[Any]:
    parts = [content[span] for span in _spans(shapes.prod(axis=1))]
    if scalar:
        return [part[0] for part in parts]
    return [part.reshape(shape) for part, shape in zip(parts, shapes.tolist(), strict=True)]


def _spans(lengths: Array) -> list[slice]:
    """Return consecutive slices of these lengths."""
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    return list(map(slice, [0, *ends], ends))


def _class_of(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute, None)
