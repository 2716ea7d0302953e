"""Payload ↔ Flower's RecordDict; the only file in `common` that imports Flower.

A message is one ConfigRecord, its arrays one safetensors blob in it. Flower moves every record, array and chunk of an array
as an object of its own, each with a call of its own: so a message is 3 objects, however many arrays it has, not dozens.
"""

from dataclasses import fields
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
from flwr.app import Array as FlowerArray
from flwr.app import ArrayRecord, ConfigRecord, RecordDict
from safetensors.numpy import load, save

from common.arrays import Arrays, group
from common.errors import WireError
from common.wire.messages import SCHEMA, Metrics, Payload

P = TypeVar("P", bound=Payload)
_RECORD, _SCHEMA, _PAYLOAD, _ARRAYS = "fedloom", "wire.schema", "wire.payload", "wire.arrays"


def encode(payload: Payload) -> RecordDict:
    """Write a payload into a record.

    Raises:
        WireError: A field holds what the schema does not allow, named by payload and field.
    """
    name = type(payload).__name__
    arrays: Arrays = {}
    config: dict[str, Any] = {_SCHEMA: SCHEMA, _PAYLOAD: name}
    for field, kind in _SCHEMAS[type(payload)]:
        value = getattr(payload, field)
        if kind == Arrays:
            arrays |= {f"{field}/{key}": _plain(f"{name}.{field}", key, a) for key, a in value.items()}
        elif kind == Metrics:
            config |= {f"{field}/{key}": float(number) for key, number in value.items()}
        elif isinstance(value, kind if isinstance(kind, type) else list):
            config[field] = value
        else:
            raise WireError(f"{name}.{field}: {type(value).__name__} where {kind} belongs")
    return RecordDict({_RECORD: ConfigRecord({**config, _ARRAYS: save(arrays)})})


def decode(payload_type: type[P], record: RecordDict) -> P:
    """Read a payload out of a record; inverse of `encode`.

    Raises:
        WireError: Another payload, another schema version, a missing field or a field of the wrong type.
    """
    name, config = payload_type.__name__, record.get(_RECORD)
    if not isinstance(config, ConfigRecord) or config.get(_PAYLOAD) != name:
        raise WireError(
            f"expected {name}, got {config.get(_PAYLOAD) if isinstance(config, ConfigRecord) else 'nothing'!r}"
        )
    if config.get(_SCHEMA) != SCHEMA:
        version = config.get(_SCHEMA)
        raise WireError(f"{name}: schema version {version!r}, this side speaks {SCHEMA}; update the older side")
    arrays = _load(name, config.get(_ARRAYS))
    values: dict[str, Any] = {}
    for field, kind in _SCHEMAS[payload_type]:
        if kind == Arrays:
            values[field] = group(field, arrays)
        elif kind == Metrics:
            values[field] = group(field, config)
            if not all(isinstance(number, float) for number in values[field].values()):
                raise WireError(f"{name}.{field}: a metric that is no number")
        elif field not in config or not isinstance(config[field], kind if isinstance(kind, type) else list):
            raise WireError(f"{name}.{field}: missing or not of type {kind}")
        else:
            values[field] = config[field]
    return payload_type(**values)


def to_record(arrays: Arrays) -> ArrayRecord:
    """A model as Flower's strategies pass it around: one entry an array."""
    return ArrayRecord({name: FlowerArray(np.asarray(a, order="C")) for name, a in arrays.items()})


def _fields(payload_type: type[Any]) -> tuple[tuple[str, Any], ...]:
    """Field names and types, in order."""
    hints = get_type_hints(payload_type)
    return tuple((f.name, hints[f.name]) for f in fields(payload_type))


_SCHEMAS: dict[type[Any], tuple[tuple[str, Any], ...]] = {payload: _fields(payload) for payload in get_args(Payload)}


def _plain(place: str, key: str, array: Any) -> np.ndarray[Any, Any]:
    """The array, if its numbers can travel: booleans, integers and floats."""
    plain = np.asarray(array, order="C")
    if plain.dtype.kind not in "biuf":
        raise WireError(f"{place}: array '{key}' has type {plain.dtype}; only booleans, integers and floats travel")
    return plain


def _load(name: str, blob: Any) -> Arrays:
    if not isinstance(blob, bytes):
        raise WireError(f"{name}: no arrays")
    try:
        arrays: Arrays = load(blob)
    except Exception as error:  # what bytes of strangers make a parser raise is no closed list
        raise WireError(f"{name}: the arrays are garbled ({error})") from None
    return arrays
