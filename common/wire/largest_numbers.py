"""Updates as their largest numbers with their places. Pure.

An array `name` is sent as `name@ids` (places in the flat array, ascending) and `name@kept` (numbers). The rest is zero.
"""

from collections.abc import Mapping
from math import ceil

import numpy as np

from common.arrays import Array, Arrays
from common.errors import WireError

IDS, KEPT = "@ids", "@kept"


def pack_largest(name: str, a: Array, keep: float) -> Arrays:
    """Return the share `keep` of an array's numbers, those of the largest magnitude; zeros are never sent."""
    flat = a.reshape(-1)
    most = _most(flat.size, keep)
    ids = np.argpartition(np.abs(flat), -most)[-most:] if most < flat.size else np.arange(flat.size)
    ids = np.sort(ids[flat[ids] != 0]).astype(np.int32 if flat.size <= np.iinfo(np.int32).max else np.int64)
    return {name + IDS: ids, name + KEPT: flat[ids]}


def unpack_largest(received: Mapping[str, Array], template: Mapping[str, Array], keep: float, what: str) -> Arrays:
    """Return the whole arrays; inverse of `pack_largest` but for the numbers that it leaves out.

    Raises:
        WireError: Places and numbers fit no array of the template or are more than `keep`; names `what` and the array.
    """
    sent = [name.removesuffix(IDS) for name in received if name.endswith(IDS)]
    parts = {name + suffix for name in sent for suffix in (IDS, KEPT)}
    whole = {name: a for name, a in received.items() if name not in parts}
    if repeated := whole.keys() & set(sent):
        raise WireError(f"{what}: array '{min(repeated)}' is sent twice")
    return whole | {name: _restore(f"{what}: array '{name}'", name, received, template, keep) for name in sent}


def _restore(place: str, name: str, received: Mapping[str, Array], template: Mapping[str, Array], keep: float) -> Array:
    like, ids, numbers = template.get(name), received[name + IDS], received.get(name + KEPT)
    if like is None or numbers is None or ids.dtype not in (np.int32, np.int64) or ids.ndim != 1:
        raise WireError(f"{place}: places belong to no array of the model, lack their numbers, or are no vector of int")
    if numbers.dtype != np.float32 or numbers.shape != ids.shape:
        raise WireError(f"{place}: numbers are {numbers.dtype}{list(numbers.shape)}, expected float32[{len(ids)}]")
    if len(ids) > (most := _most(like.size, keep)):
        raise WireError(f"{place}: {len(ids)} of {like.size} numbers are sent, at most {most} may be")
    if np.any(ids[1:] <= ids[:-1]) or (ids.size and (ids[0] < 0 or ids[-1] >= like.size)):
        raise WireError(f"{place}: places are out of range, repeated or not in ascending order")
    whole = np.zeros(like.size, np.float32)
    whole[ids] = numbers
    return whole.reshape(like.shape)


def _most(size: int, keep: float) -> int:
    return ceil(keep * size)
