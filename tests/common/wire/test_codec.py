"""The codec: what goes in comes out, and what does not fit the schema is refused by name."""

import json
from dataclasses import dataclass, fields, replace
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, RecordDict
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from common.arrays import Arrays
from common.errors import WireError
from common.wire import codec
from common.wire.codec import decode, encode, to_record
from common.wire.messages import (
    SCHEMA,
    CountsReply,
    EnrolReply,
    EnrolRequest,
    EvaluateReply,
    Metrics,
    Payload,
    TrainReply,
)

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


def tampered(record: RecordDict, **config: Any) -> RecordDict:
    """The same message with other entries; None removes one."""
    entries = {**dict(record["fedloom"]), **{k.replace("__", "."): v for k, v in config.items()}}  # type: ignore[arg-type]
    return RecordDict({"fedloom": ConfigRecord({k: v for k, v in entries.items() if v is not None})})


@pytest.mark.parametrize("kind", PAYLOADS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_decode_inverts_encode(kind: Any, data: st.DataObject) -> None:
    payload = data.draw(payloads(kind))
    decoded = decode(kind, encode(payload))
    assert all(same(getattr(payload, f.name), getattr(decoded, f.name)) for f in fields(kind))


@pytest.mark.parametrize("names", [[], [""], ["é", "灯 / 🏠"]])
def test_lists_of_texts_travel_also_when_empty(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(codec._SCHEMAS, Vocabulary, codec._fields(Vocabulary))
    assert decode(Vocabulary, encode(Vocabulary(names))) == Vocabulary(names)  # type: ignore[type-var,arg-type]


def test_text_of_any_script_travels() -> None:
    reply = EnrolReply("Küche-灯-🏠", "run:é", 0)
    assert decode(EnrolReply, encode(reply)) == reply


def test_a_message_is_one_record() -> None:
    record = encode(replace(REPLY, gradient={"w": np.zeros(4, np.float64)}))
    assert list(record) == ["fedloom"]
    assert isinstance(record["fedloom"], ConfigRecord)


def test_encoding_changes_nothing_and_copies() -> None:
    update = np.arange(6, dtype=np.float32).reshape(2, 3).T  # not contiguous
    before = update.copy()
    record = encode(replace(REPLY, update={"w": update}))
    np.testing.assert_array_equal(update, before)
    np.testing.assert_array_equal(decode(TrainReply, record).update["w"], before)


def test_a_model_as_flowers_strategies_want_it() -> None:
    model = {"b": np.ones((2, 3), np.float32).T, "a": np.zeros((), np.int64)}
    back = {name: a.numpy() for name, a in to_record(model).items()}
    assert list(back) == ["b", "a"]
    assert all(same(np.ascontiguousarray(model[n]).reshape(model[n].shape), back[n]) for n in model)


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (replace(REPLY, loss="low"), r"TrainReply\.loss: str"),
        (replace(REPLY, round=2.5), r"TrainReply\.round: float"),
        (EnrolReply(None, "e", 1), r"EnrolReply\.client: NoneType"),  # type: ignore[arg-type]
    ],
)
def test_a_field_of_the_wrong_type_is_not_sent(bad: Any, text: str) -> None:
    with pytest.raises(WireError, match=text):
        encode(bad)


@pytest.mark.parametrize("dtype", ["O", "complex64", "U3", "datetime64[s]"])
def test_types_that_do_not_travel_are_named(dtype: str) -> None:
    with pytest.raises(
        WireError, match=r"TrainReply\.update: array 'w' has type \S+; only booleans, integers and floats"
    ):
        encode(replace(REPLY, update={"w": np.zeros(2, dtype)}))


def test_another_payload_is_named() -> None:
    with pytest.raises(WireError, match="expected CountsReply, got 'TrainReply'"):
        decode(CountsReply, encode(REPLY))


@pytest.mark.parametrize(
    "record", [RecordDict(), RecordDict({"arrays": ArrayRecord()}), RecordDict({"fedloom": ArrayRecord()})]
)
def test_an_empty_message_is_no_payload(record: RecordDict) -> None:
    with pytest.raises(WireError, match="expected TrainReply, got"):
        decode(TrainReply, record)


@pytest.mark.parametrize("version", [SCHEMA + 1, 0, None, "1"])
def test_another_schema_is_refused_with_advice(version: Any) -> None:
    with pytest.raises(
        WireError, match=f"schema version {version!r}, this side speaks {SCHEMA}; update the older side"
    ):
        decode(TrainReply, tampered(encode(REPLY), wire__schema=version))


@pytest.mark.parametrize(("field", "value"), [("loss", None), ("loss", "low"), ("steps", 1.5), ("examples", None)])
def test_a_missing_or_mistyped_field_is_named(field: str, value: Any) -> None:
    with pytest.raises(WireError, match=rf"TrainReply\.{field}: missing or not of type"):
        decode(TrainReply, tampered(encode(REPLY), **{field: value}))


@pytest.mark.parametrize("value", [[0.5, 0.6], "0.5", b"", 1, True])
def test_a_metric_that_is_no_number_is_refused(value: Any) -> None:
    record = encode(EvaluateReply(1, {"loss": 0.5}, {"loss": 2.0}))
    with pytest.raises(WireError, match=r"EvaluateReply\.metrics: a metric that is no number"):
        decode(EvaluateReply, tampered(record, **{"metrics/loss": value}))


def blob(header: Any, numbers: bytes = bytes(28)) -> bytes:
    """A safetensors file: length of the header, header, numbers."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def entry(kind: str = "F32", shape: Any = (7,), offsets: Any = (0, 28)) -> dict[str, Any]:
    return {"update/w": {"dtype": kind, "shape": shape, "data_offsets": offsets}}


BROKEN = {
    "nothing": b"",
    "no safetensors": b"these are no numbers",
    "a pickle": b"\x80\x04].",
    "a zip": b"PK\x03\x04 and no more",
    "a header that is no JSON": blob(b"["),
    "a header longer than the file": (2**40).to_bytes(8, "little") + b"{}",
    "too few numbers": blob(entry(shape=[8], offsets=[0, 32])),
    "numbers left over": blob(entry(shape=[6], offsets=[0, 24])),
    "a shape that is not the numbers'": blob(entry(shape=[6])),
    "a negative length": blob(entry(shape=[-7])),
    "an unknown type": blob(entry(kind="OBJECT")),
    "bfloat16, which NumPy lacks": blob(entry(kind="BF16", shape=[14])),
    "text for arrays": "numbers",
    "no arrays": None,
}


def test_the_blob_these_are_made_from_is_sound() -> None:
    assert decode(TrainReply, tampered(encode(REPLY), wire__arrays=blob(entry()))).update["w"].tolist() == [0.0] * 7


@pytest.mark.parametrize("arrays", BROKEN.values(), ids=BROKEN.keys())
def test_arrays_that_are_garbled_are_refused(arrays: Any) -> None:
    with pytest.raises(WireError, match="TrainReply"):
        decode(TrainReply, tampered(encode(REPLY), wire__arrays=arrays))


def test_a_catalogue_of_a_megabyte_travels() -> None:
    request = EnrolRequest("run", "{}", "x" * 1_000_000)
    assert decode(EnrolRequest, encode(request)) == request
