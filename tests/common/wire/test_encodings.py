"""Updates with fewer bytes a number: rounding, bytes, and what a server refuses."""

from collections.abc import Callable

import numpy as np
import pytest

from common.arrays import Arrays
from common.errors import WireError
from common.wire.encodings import BLOCK, LARGEST, pack, unpack
from common.wire.form import Form

FORMS = {"float16": Form("float16"), "int8": Form("int8")}
CODES, TOP = FORMS["int8"], Form("top-k", 0.1)

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
    packed = pack(arrays, FORMS[encoding])
    received = unpack(packed, FORMS[encoding], {})
    assert received.keys() == arrays.keys()
    for name, a in arrays.items():
        assert (received[name].dtype, received[name].shape) == (a.dtype, a.shape)
        assert np.abs(received[name] - a).max() <= most * np.abs(a).max()
    assert packed["table@rows"] is arrays["table@rows"]
    assert sum(a.nbytes for a in pack({"w": arrays["w"]}, FORMS[encoding]).values()) <= share * arrays["w"].nbytes


@pytest.mark.parametrize("size", [1e-9, 1e-7, 1e-5, 1e-3, 1.0, 1e4])
def test_each_number_is_at_most_half_a_scale_away(size: float) -> None:
    """The scale of a block of 256 is 1/127 of its largest number, rounded up to the next float16."""
    a = (np.random.default_rng(1).normal(size=1000) * size).astype(np.float32)
    received = unpack(pack({"a": a}, CODES), CODES, {})["a"]
    for first in range(0, a.size, BLOCK):
        block = a[first : first + BLOCK]
        scale = np.abs(block).max() / LARGEST * (1 + 2**-10) + 2**-24
        assert np.abs(received[first : first + BLOCK] - block).max() <= scale / 2


def test_huge_and_tiny_numbers_stay_finite() -> None:
    for form in FORMS.values():
        extreme = {"w": np.array([3e38, -3e38, 1e-40], np.float32)}
        assert np.isfinite(unpack(pack(extreme, form), form, {})["w"]).all()


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
        unpack(hostile, CODES, {})


def test_the_largest_numbers_are_sent_with_their_places() -> None:
    template = {name: UPDATE[name] for name in ("w", "zero")}
    packed = pack(template, TOP)
    assert packed.keys() == {"w@ids", "w@kept", "zero@ids", "zero@kept"}
    assert (len(packed["w@ids"]), len(packed["zero@ids"])) == (60, 0)
    received = unpack(packed, TOP, template)
    sent = received["w"] != 0
    np.testing.assert_array_equal(received["w"][sent], UPDATE["w"][sent])
    assert np.abs(UPDATE["w"][sent]).min() >= np.abs(UPDATE["w"][~sent]).max()
    assert not received["zero"].any()


@pytest.mark.parametrize("keep", [1e-9, 1.0])
def test_at_least_one_number_and_at_most_all_are_sent(keep: float) -> None:
    form = Form("top-k", keep)
    received = unpack(pack({"w": UPDATE["w"]}, form), form, UPDATE)["w"]
    assert np.count_nonzero(received) == (600 if keep == 1 else 1)


def largest(**arrays: np.ndarray) -> Arrays:
    packed = pack({"w": UPDATE["w"]}, TOP)
    return {**packed, **{f"w@{name}": a for name, a in arrays.items()}}


@pytest.mark.parametrize(
    "hostile",
    [
        largest(ids=np.arange(59, -1, -1, dtype=np.int32)),
        largest(ids=np.zeros(60, np.int32)),
        largest(ids=np.arange(541, 601, dtype=np.int32)),
        largest(ids=np.arange(-1, 59, dtype=np.int32)),
        largest(ids=np.arange(61, dtype=np.int32), kept=np.ones(61, np.float32)),
        largest(ids=np.arange(60, dtype=np.float32)),
        largest(ids=np.arange(60, dtype=np.int32).reshape(6, 10)),
        largest(kept=np.ones(59, np.float32)),
        largest(kept=np.ones(60)),
        {"w@ids": np.zeros(1, np.int32)},
        {**largest(), "w": UPDATE["w"]},
        {"v@ids": np.zeros(1, np.int32), "v@kept": np.ones(1, np.float32)},
    ],
)
def test_places_and_numbers_that_do_not_fit_are_refused(hostile: Arrays) -> None:
    with pytest.raises(WireError, match=r"update: array '[vw]'"):
        unpack(hostile, TOP, {"w": UPDATE["w"]})
