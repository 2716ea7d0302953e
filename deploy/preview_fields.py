"""Fields of a reply in a preview: name, shape, type, bytes, protection, norms, examples."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import Message

from client.owner.entry import CONSTANTS
from client.owner.observed_release import ReleasedPair
from common.arrays import Array, Arrays, norm
from common.config.run import RunConfig
from common.privacy.options import PrivacyOptions
from common.wire.codec import arrays_of, outline
from common.wire.encodings import CODES
from common.wire.messages import AssignReply, CountsReply
from common.wire.sparse_rows import ROWS, VALUES

SHOWN_VALUES = 3
"""Number of example values of an array."""


@dataclass(frozen=True)
class FieldPreview:
    """One field of a reply."""

    name: str
    shape: tuple[int, ...]
    """Shape of an array; empty for a single value."""
    type: str
    """dtype of an array; `int`, `float`, `str` or `bool` otherwise."""
    bytes: int
    protection: str
    """`exact`, `clipped, noised`, `noised`, `in plaintext` or `constant`."""
    norm_before: float | None
    """L2 norm of the exact values; None if no noise is possible, or if it is drawn in the local steps."""
    norm_after: float | None
    """L2 norm of the values that would be sent; None for ids and for values that no noise covers."""
    examples: tuple[Any, ...]
    """First values that are not zero."""


def describe_fields(reply: Message, config: RunConfig, pair: ReleasedPair | None) -> tuple[FieldPreview, ...]:
    """Return the fields of a reply.

    Args:
        reply: Reply without an error.
        config: Configuration of the run.
        pair: Exact and released values of the reply; None if it was not released by a transform chain.
    """
    about, arrays = outline(reply.content), arrays_of(reply.content)
    is_counts = about.payload == CountsReply.__name__
    options = config.task_options.count_privacy if is_counts else config.privacy
    of_arrays = [_array_field(name, array, options, pair) for name, array in arrays.items()]
    return (
        *of_arrays,
        *(_value_field(about.payload, name, value, options, pair) for name, value in about.values.items()),
    )


def _array_field(name: str, array: Array, options: PrivacyOptions, pair: ReleasedPair | None) -> FieldPreview:
    ids = name.endswith(ROWS) or (pair is not None and name in pair.exact.ids)
    exact = _exact(name, array, options, pair)
    protection = _protection(options, pair, ids=ids)
    before = None if ids or exact is None or name.endswith(CODES) else norm({name: exact})
    shown = np.ravel(array)[np.flatnonzero(array)[:SHOWN_VALUES]]
    after = None if ids or name.endswith(CODES) else norm({name: array})
    examples = tuple(shown.tolist())
    return FieldPreview(name, array.shape, str(array.dtype), array.nbytes, protection, before, after, examples)


def _value_field(
    payload: str, name: str, value: Any, options: PrivacyOptions, pair: ReleasedPair | None
) -> FieldPreview:
    noisy, protection = options.unit != "none", "in plaintext"
    norms: tuple[float | None, float | None] = (None, None)
    if payload == AssignReply.__name__ and name.startswith("losses/") and noisy:
        exact = pair.exact.arrays.get(name.replace("losses/", "loss/", 1)) if pair else None
        protection = _protection(options, pair, ids=False)
        norms = None if exact is None else abs(float(exact)), abs(float(value))
    elif noisy and (name, value) in CONSTANTS.items():
        protection = "constant"
    size = len(value.encode()) if isinstance(value, str) else 8
    return FieldPreview(name, (), type(value).__name__, size, protection, *norms, (value,))


def _protection(options: PrivacyOptions, pair: ReleasedPair | None, *, ids: bool) -> str:
    if options.unit == "none":
        return "exact"
    if ids:
        return "in plaintext"
    clipped = pair is not None and math.isfinite(pair.clip) and norm(_clipped(pair)) > pair.clip
    return "clipped, noised" if clipped else "noised"


def _clipped(pair: ReleasedPair) -> Arrays:
    """Return the exact arrays that are clipped together."""
    return {name: array for name, array in pair.exact.arrays.items() if name not in pair.exact.ids}


def _exact(name: str, array: Array, options: PrivacyOptions, pair: ReleasedPair | None) -> Array | None:
    if options.unit == "none":
        return array
    if options.unit == "record" or pair is None:
        return None
    return pair.exact.arrays.get(name.removesuffix(VALUES))
