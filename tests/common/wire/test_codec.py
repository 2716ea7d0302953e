"""Codec: decode inverts encode."""

from dataclasses import dataclass, fields, replace
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from flwr.app import ConfigRecord, RecordDict
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from common.arrays import Arrays
from common.wire import codec
from common.wire.codec import decode, encode, outline
from common.wire.messages import EnrolReply, EnrolRequest, Metrics, Payload, TrainReply

PAYLOADS = get_args(Payload)
TEXTS = st.text(max_size=20)
DTYPES = st.sampled_from([np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_])
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
ARRAYS = st.dictionaries(TEXTS, DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, SHAPES)), max_size=4)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    Arrays: ARRAYS,
    Metrics: st.dictionaries(TEXTS, st.floats(), max_size=3),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(),
    str: TEXTS,
    bool: st.booleans(),
    list[str]: st.lists(TEXTS, max_size=3),
}
REPLY = TrainReply(
    round=3,
    update={"w": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(1.5, np.float32)},
    gradient={},
    loss=0.25,
    examples=7,
    steps=3,
)


@dataclass(frozen=True)
class Vocabulary:
    """A payload as a later method may have one."""

    names: list[str]


def payloads(kind: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{f.name: VALUES[hints[f.name]] for f in fields(kind)})


def same(left: Any, right: Any) -> bool:
    """Equality of fields where NaN equals NaN and arrays agree in type and shape."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, np.ndarray):
        equal_nan = left.dtype.kind == "f"
        return (left.dtype, left.shape) == (right.dtype, right.shape) and np.array_equal(left, right, equal_nan)
    return bool(type(left) is type(right) and (left == right or (left != left and right != right)))


@pytest.mark.parametrize("kind", PAYLOADS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_decode_inverts_encode(kind: Any, data: st.DataObject) -> None:
    payload = data.draw(payloads(kind))
    decoded = decode(kind, encode(payload))
    assert all(same(getattr(payload, f.name), getattr(decoded, f.name)) for f in fields(kind))


@pytest.mark.parametrize("names", [[], [""], ["é", "灯 / 🏠"]])
def test_lists_of_texts_are_encoded_also_when_empty(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(codec._SCHEMAS, Vocabulary, codec._fields(Vocabulary))
    assert decode(Vocabulary, encode(Vocabulary(names))) == Vocabulary(names)  # type: ignore[type-var,arg-type]


def test_text_of_any_script_is_encoded() -> None:
    reply = EnrolReply("Küche-灯-🏠", "run:é", 0)
    assert decode(EnrolReply, encode(reply)) == reply


def test_a_message_is_one_record() -> None:
    record = encode(replace(REPLY, gradient={"w": np.zeros(4, np.float64)}))
    assert list(record) == ["fedloom"]
    assert isinstance(record["fedloom"], ConfigRecord)


def test_encoding_copies_and_leaves_its_argument_unchanged() -> None:
    update = np.arange(6, dtype=np.float32).reshape(2, 3).T  # not contiguous
    before = update.copy()
    record = encode(replace(REPLY, update={"w": update}))
    np.testing.assert_array_equal(update, before)
    np.testing.assert_array_equal(decode(TrainReply, record).update["w"], before)


def test_a_catalogue_of_a_megabyte_is_encoded() -> None:
    request = EnrolRequest("run", "{}", "x" * 1_000_000)
    assert decode(EnrolRequest, encode(request)) == request


def test_an_outline_has_names_numbers_and_shapes_without_decoding_arrays() -> None:
    reply = TrainReply(3, {"w": np.zeros((2, 3), np.float32)}, {}, 0.5, 7, 4)
    found = outline(encode(reply))
    assert found.payload == "TrainReply"
    assert found.values == {"round": 3, "loss": 0.5, "examples": 7, "steps": 4}
    assert found.shapes == {"update/w": (2, 3)}
    assert found.size > 24


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\xff" * 20,
        b"\x02\0\0\0\0\0\0\0[]",
        b'\x07\0\0\0\0\0\0\0{"a":1}',
        "text",
        b"\x00\x00\x01\0\0\0\0\0" + b"[" * 65_536,
    ],
)
def test_an_outline_of_a_malformed_message_is_empty(blob: bytes | str) -> None:
    assert outline(RecordDict({"fedloom": ConfigRecord({"wire.arrays": blob})})).shapes == {}
    assert outline(RecordDict()).payload == ""
