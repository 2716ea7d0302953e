"""Codec between payloads and Flower's RecordDict.

A message is one ConfigRecord that holds all arrays as one safetensors blob. Flower sends every record, array and chunk
of an array as an object in a call of its own. One blob makes every message 3 objects, whatever its number of arrays.
Of `common`, this module and `common.wire.hubs` alone import Flower.
"""

import dataclasses
import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
from flwr.app import ConfigRecord, RecordDict
from safetensors.numpy import load, save

from common.arrays import Arrays
from common.errors import WireError
from common.wire.messages import SCHEMA, Metrics, Payload

P = TypeVar("P", bound=Payload)
RECORD, VERSION, PAYLOAD, ARRAYS = "fedloom", "wire.schema", "wire.payload", "wire.arrays"
"""Name of a message's record, and its entries beside the payload's fields."""


class Handed(RecordDict):
    """Content of a message inside one process: the payload itself, without records.

    Args:
        payload: The payload.
        size: Bytes of the encoding.
    """

    def __init__(self, payload: Payload, size: int) -> None:
        super().__init__()
        self.payload, self.size = payload, size


def size_without_arrays(payload: Payload) -> int:
    """Return the bytes of a payload's encoding but its arrays."""
    config, _ = _split(payload)
    return record_size(config) + len(ARRAYS)


def hand(payload: Payload) -> Handed:
    """Return the content of a message inside one process; faster than `encode`, with its errors."""
    config, arrays = _split(payload)
    return Handed(payload, record_size(config) + len(ARRAYS) + (len(save(arrays)) if arrays else _NO_ARRAYS))


_NO_ARRAYS = len(save({}))


def encode(payload: Payload) -> RecordDict:
    """Write a payload into a record.

    Raises:
        WireError: A field holds a value that the schema does not allow; names payload and field.
    """
    config, arrays = _split(payload)
    return RecordDict({RECORD: ConfigRecord({**config, ARRAYS: save(arrays)})})


def _split(payload: Payload) -> tuple[dict[str, Any], Arrays]:
    """Return the entries of a record but its arrays, and the arrays by `field/key`."""
    schema = next(kind for kind in type(payload).__mro__ if kind in _SCHEMAS)
    name = schema.__name__
    arrays: Arrays = {}
    config: dict[str, Any] = {VERSION: SCHEMA, PAYLOAD: name}
    for field, kind in _SCHEMAS[schema]:
        value = getattr(payload, field)
        if kind == Arrays:
            arrays |= {f"{field}/{key}": _plain(f"{name}.{field}", key, a) for key, a in value.items()}
        elif kind == Metrics:
            config |= {f"{field}/{key}": float(number) for key, number in value.items()}
        elif isinstance(value, kind if isinstance(kind, type) else list):
            config[field] = value
        else:
            raise WireError(f"{name}.{field}: {type(value).__name__} instead of {kind}")
    return config, arrays


def decode(payload_type: type[P], record: RecordDict) -> P:
    """Read a payload from a record; inverse of `encode`.

    Raises:
        WireError: The record holds another payload or schema version, lacks a field, or a field has the wrong type.
    """
    name, config = payload_type.__name__, record.get(RECORD)
    if isinstance(record, Handed):
        if isinstance(record.payload, payload_type):
            return record.payload
        raise WireError(f"expected {name}, got '{type(record.payload).__name__}'")
    if not isinstance(config, ConfigRecord) or config.get(PAYLOAD) != name:
        raise WireError(
            f"expected {name}, got {config.get(PAYLOAD) if isinstance(config, ConfigRecord) else 'nothing'!r}"
        )
    if config.get(VERSION) != SCHEMA:
        version = config.get(VERSION)
        raise WireError(f"{name}: schema version {version!r} differs from {SCHEMA} here; update the older side")
    arrays, metrics = _by_field(_load(name, config.get(ARRAYS))), _by_field(config)
    values: dict[str, Any] = {}
    for field, kind in _SCHEMAS[payload_type]:
        if kind == Arrays:
            values[field] = arrays.get(field, {})
        elif kind == Metrics:
            values[field] = metrics.get(field, {})
            if not all(isinstance(number, float) for number in values[field].values()):
                raise WireError(f"{name}.{field}: a metric is not a number")
        elif field not in config or not isinstance(config[field], kind if isinstance(kind, type) else list):
            raise WireError(f"{name}.{field}: missing or not of type {kind}")
        else:
            values[field] = config[field]
    return payload_type(**values)


def _by_field(entries: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return field -> key -> value of entries `field/key`; others are left out."""
    fields: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for name, value in entries.items():
        field, slash, key = name.partition("/")
        if slash:
            fields[field][key] = value
    return fields


@dataclasses.dataclass(frozen=True)
class Outline:
    """Description of a message without its arrays' values."""

    payload: str = ""
    """Class name of the payload; empty if the record is not one of these messages."""
    values: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Values of all fields but arrays, empty lists and empty texts; the entry of a metric is `field/key`."""
    shapes: dict[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    """Shapes of the arrays, by `field/key`."""
    size: int = 0
    """Bytes of the content."""


def outline(record: RecordDict) -> Outline:
    """Describe a message, of any sender, without decoding its arrays."""
    size, config = sum(map(record_size, record.config_records.values())), record.get(RECORD)
    if not isinstance(config, ConfigRecord):
        return Outline(size=size)
    values = {
        key: value for key, value in config.items() if key not in (VERSION, PAYLOAD, ARRAYS) and value not in ("", [])
    }
    return Outline(str(config.get(PAYLOAD, "")), values, _shapes(config.get(ARRAYS)), size)


def arrays_of(record: RecordDict) -> Arrays:
    """Return all arrays of a message, by `field/key`.

    Raises:
        WireError: The record is not one of these messages, or its arrays cannot be decoded.
    """
    config = record.get(RECORD)
    return _load("message", config.get(ARRAYS) if isinstance(config, ConfigRecord) else None)


def _fields(payload_type: type[Any]) -> tuple[tuple[str, Any], ...]:
    """Return field names and types in order of declaration."""
    hints = get_type_hints(payload_type)
    return tuple((f.name, hints[f.name]) for f in dataclasses.fields(payload_type))


_SCHEMAS: dict[type[Any], tuple[tuple[str, Any], ...]] = {payload: _fields(payload) for payload in get_args(Payload)}


def _plain(field: str, key: str, array: Any) -> np.ndarray[Any, Any]:
    """Return the array if the schema supports its dtype: boolean, integer or float."""
    plain = np.asarray(array, order="C")
    if plain.dtype.kind not in "biuf":
        raise WireError(
            f"{field}: array '{key}' has type {plain.dtype}; only booleans, integers and floats are supported"
        )
    return plain


def _load(name: str, blob: Any) -> Arrays:
    if not isinstance(blob, bytes):
        raise WireError(f"{name}: arrays are missing")
    try:
        arrays: Arrays = load(blob)
    except Exception as error:  # parsers of foreign bytes raise errors of any type
        raise WireError(f"{name}: arrays cannot be decoded ({error})") from None
    return arrays


def record_size(record: Mapping[str, Any]) -> int:
    """Return the bytes of a record's entries as Flower counts them; its own count fails on empty texts."""
    return sum(len(key) + _value_size(value) for key, value in record.items())


def _value_size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, int | float):
        return 1 if isinstance(value, bool) else 8
    return sum(map(_value_size, value)) if isinstance(value, list) else len(value.data)  # Flower's arrays


def _shapes(blob: Any) -> dict[str, tuple[int, ...]]:
    """Return the shapes in the header of a safetensors blob; empty if malformed.

    The header is its length in 8 bytes, then JSON.
    """
    try:
        header = json.loads(blob[8 : 8 + int.from_bytes(blob[:8], "little")])
        return {str(name): tuple(map(int, header[name]["shape"])) for name in header if name != "__metadata__"}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
