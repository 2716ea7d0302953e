"""Updates with fewer bytes: half precision, or 8 bits with scales. Pure."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from common.arrays import Array, Arrays
from common.errors import WireError
from common.wire.messages import TrainReply

BLOCK = 256
"""Numbers with one scale."""

LARGEST = 127
CODES, SCALES = "@codes", "@scales"
HALF = np.finfo(np.float16)


def pack(arrays: Mapping[str, Array], encoding: str) -> Arrays:
    """Return the arrays with their float32 numbers in the form `encoding`; ids of rows stay.

    An array `name` of 8 bits is sent as `name@codes` and `name@scales`.
    """
    packed: Arrays = {}
    for name, a in arrays.items():
        if a.dtype != np.float32 or encoding == "float32":
            packed[name] = a
        elif encoding == "float16":
            packed[name] = np.clip(a, HALF.min, HALF.max).astype(np.float16)
        else:
            packed |= _to_codes(name, a)
    return packed


def unpack(received: Mapping[str, Array], encoding: str, what: str = "update") -> Arrays:
    """Return the arrays in float32; inverse of `pack` up to what it rounds.

    Args:
        received: Arrays as `pack` returns them.
        encoding: Their form.
        what: Name of the arrays in errors.

    Raises:
        WireError: Codes and scales do not fit each other, or a scale is not positive.
    """
    if encoding == "float32":
        return dict(received)
    if encoding == "float16":
        return {name: a.astype(np.float32) if a.dtype == np.float16 else a for name, a in received.items()}
    coded = [name.removesuffix(CODES) for name in received if name.endswith(CODES)]
    of_codes = {name + suffix for name in coded for suffix in (CODES, SCALES)}
    whole = {name: a for name, a in received.items() if name not in of_codes}
    if repeated := whole.keys() & set(coded):
        raise WireError(f"{what}: array '{min(repeated)}' is sent twice")
    return whole | {name: _from_codes(f"{what}: array '{name}'", name, received) for name in coded}


def unpack_reply(reply: TrainReply, encoding: str) -> TrainReply:
    """Return the reply with its numbers in float32.

    Raises:
        WireError: See `unpack`.
    """
    update, gradient = unpack(reply.update, encoding), unpack(reply.gradient, encoding, "gradient")
    return replace(reply, update=update, gradient=gradient)


def _to_codes(name: str, a: Array) -> Arrays:
    blocks = np.zeros((-(-a.size // BLOCK), BLOCK), np.float32)
    blocks.reshape(-1)[: a.size] = a.reshape(-1)
    exact = np.clip(np.abs(blocks).max(axis=1) / LARGEST, HALF.smallest_subnormal, HALF.max)
    scales = exact.astype(np.float16)
    scales = np.where(scales < exact, np.nextafter(scales, HALF.max), scales)  # rounded up: no code is cut off
    codes = np.clip(np.rint(blocks / scales.astype(np.float32)[:, None]), -LARGEST, LARGEST).astype(np.int8)
    return {name + CODES: codes.reshape(-1)[: a.size].reshape(a.shape), name + SCALES: scales}


def _from_codes(what: str, name: str, received: Mapping[str, Array]) -> Array:
    codes, scales = received[name + CODES], received.get(name + SCALES)
    blocks = -(-codes.size // BLOCK)
    if scales is None or codes.dtype != np.int8 or scales.dtype != np.float16 or scales.shape != (blocks,):
        raise WireError(f"{what}: 8-bit codes need one float16 scale for each {BLOCK} numbers")
    if not (np.isfinite(scales) & (scales > 0)).all():
        raise WireError(f"{what}: a scale is not positive and finite")
    numbers = codes.reshape(-1).astype(np.float32) * np.repeat(scales.astype(np.float32), BLOCK)[: codes.size]
    return numbers.reshape(codes.shape)
