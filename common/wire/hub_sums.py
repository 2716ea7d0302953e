"""Sum of the replies of a hub's clients, as one blob."""

from collections.abc import Mapping

import numpy as np
from safetensors.numpy import load, save

from common.arrays import Floats, add_prefix, group
from common.errors import WireError
from common.reply_sums import Folded

UPDATE, GRADIENT = "update", "gradient"
"""Kinds of lengths."""


def write_sum(sums: Folded, lengths: Mapping[str, Floats]) -> bytes:
    """Return a sum with the lengths of its clients' replies; inverse of `read_sum`.

    Args:
        sums: The sum.
        lengths: Kind -> length of each client's reply, (K,).
    """
    arrays = {**sums.to_arrays(), **add_prefix("lengths", dict(lengths))}
    return save({name: np.ascontiguousarray(a) for name, a in arrays.items()})


def read_sum(blob: bytes, clients: int) -> tuple[Folded, dict[str, Floats]]:
    """Return a sum and the lengths of its clients' replies. The server compares both with the replies.

    Raises:
        WireError: The blob cannot be decoded, or does not have a length for each of so many clients.
    """
    try:
        arrays = load(blob)
        sums, lengths = Folded.from_arrays(arrays), group("lengths", arrays)
    except Exception as error:  # parsers of foreign bytes raise errors of any type
        raise WireError(f"the sum cannot be decoded ({error})") from None
    if not set(lengths) <= {UPDATE, GRADIENT} or UPDATE not in lengths:
        raise WireError("the sum has no lengths of updates, or lengths of anything else")
    if any(a.shape != (clients,) or a.dtype != np.float64 for a in lengths.values()):
        raise WireError(f"the sum does not have a length for each of {clients} clients")
    return sums, lengths
