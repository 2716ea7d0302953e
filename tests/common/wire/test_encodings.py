"""Updates with fewer bytes a number: rounding, bytes, and what a server refuses."""

from collections.abc import Callable

import numpy as np
import pytest

from common.arrays import Arrays
from common.errors import WireError
from common.wire.encodings import BLOCK, LARGEST, pack, unpack

CODES = "int8"
ENCODINGS = ("float16", CODES)

RNG = np.random.default_rng(0)
UPDATE: Arrays = {
    "w": RNG.normal(size=(30, 20)).astype(np.float32),
    "zero": np.zeros(300, np.float32),
    "one": np.float32(0.5),
    "table@rows": np.array([1, 4], np.int32),
    "table@values": RNG.normal(size=(2, 7)).astype(np.float32) * 1e-3,
}


@pytest.mark.parametrize(("encoding", "most", "share"), [("float16", 2**-11, 0.5), ("int8", 0.5 / 127 + 2**-11, 0.27)])
def test_numbers_are_rounded_and_take_fewer_bytes(encoding: str, most: float, share: float) -> None:
    arrays = {name: np.asarray(a) for name, a in UPDATE.items()}
    packed = pack(arrays, encoding)
    received = unpack(packed, encoding)
    assert received.keys() == arrays.keys()
    for name, a in arrays.items():
        assert (received[name].dtype, received[name].shape) == (a.dtype, a.shape)
        assert np.abs(received[name] - a).max() <= most * np.abs(a).max()
    assert packed["table@rows"] is arrays["table@rows"]
    assert sum(a.nbytes for a in pack({"w": arrays["w"]}, encoding).values()) <= share * arrays["w"].nbytes


@pytest.mark.parametrize("size", [1e-9, 1e-7, 1e-5, 1e-3, 1.0, 1e4])
def test_each_number_is_at_most_half_a_scale_away(size: float) -> None:
    """The scale of a block of 256 is 1/127 of its largest number, rounded up to the next float16."""
    a = (np.random.default_rng(1).normal(size=1000) * size).astype(np.float32)
    received = unpack(pack({"a": a}, CODES), CODES)["a"]
    for first in range(0, a.size, BLOCK):
        block = a[first : first + BLOCK]
        scale = np.abs(block).max() / LARGEST * (1 + 2**-10) + 2**-24
        assert np.abs(received[first : first + BLOCK] - block).max() <= scale / 2


def test_huge_and_tiny_numbers_stay_finite() -> None:
    for encoding in ENCODINGS:
        extreme = {"w": np.array([3e38, -3e38, 1e-40], np.float32)}
        assert np.isfinite(unpack(pack(extreme, encoding), encoding)["w"]).all()


def changed(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Arrays:
    packed = pack({"w": UPDATE["w"]}, CODES)
    return {**packed, name: change(packed[name])}


@pytest.mark.parametrize(
    "hostile",
    [
        *(changed("w@scales", lambda s, v=value: np.full_like(s, v)) for value in (np.nan, np.inf, 0, -1)),
        changed("w@scales", lambda s: s[:-1]),
        changed("w@scales", lambda s: s.astype(np.float32)),
        changed("w@codes", lambda c: c.astype(np.int16)),
        {"w@codes": np.zeros(3, np.int8)},
        {**pack({"w": UPDATE["w"]}, CODES), "w": UPDATE["w"]},
    ],
)
def test_codes_and_scales_that_do_not_fit_are_refused(hostile: Arrays) -> None:
    with pytest.raises(WireError, match="update: array 'w'"):
        unpack(hostile, CODES)
