"""Codec: what does not fit the schema is refused by name."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, RecordDict

from common.errors import WireError
from common.wire.codec import decode, encode
from common.wire.messages import SCHEMA, EnrolReply, EvaluateReply, NamesReply, TrainReply
from tests.common.wire.test_codec import REPLY


def tampered(record: RecordDict, **config: Any) -> RecordDict:
    """Return the same message with other entries; None removes one."""
    entries = {**dict(record["fedloom"]), **{k.replace("__", "."): v for k, v in config.items()}}  # type: ignore[arg-type]
    return RecordDict({"fedloom": ConfigRecord({k: v for k, v in entries.items() if v is not None})})


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
def test_unsupported_types_are_named(dtype: str) -> None:
    with pytest.raises(
        WireError, match=r"TrainReply\.update: array 'w' has type \S+; only booleans, integers and floats"
    ):
        encode(replace(REPLY, update={"w": np.zeros(2, dtype)}))


def test_another_payload_is_named() -> None:
    with pytest.raises(WireError, match="expected NamesReply, got 'TrainReply'"):
        decode(NamesReply, encode(REPLY))


@pytest.mark.parametrize(
    "record", [RecordDict(), RecordDict({"arrays": ArrayRecord()}), RecordDict({"fedloom": ArrayRecord()})]
)
def test_an_empty_message_is_no_payload(record: RecordDict) -> None:
    with pytest.raises(WireError, match="expected TrainReply, got"):
        decode(TrainReply, record)


@pytest.mark.parametrize("version", [SCHEMA + 1, 0, None, "1"])
def test_another_schema_is_refused_with_advice(version: Any) -> None:
    with pytest.raises(
        WireError, match=f"schema version {version!r} differs from {SCHEMA} here; update the older side"
    ):
        decode(TrainReply, tampered(encode(REPLY), wire__schema=version))


@pytest.mark.parametrize(("field", "value"), [("loss", None), ("loss", "low"), ("steps", 1.5), ("examples", None)])
def test_a_missing_or_mistyped_field_is_named(field: str, value: Any) -> None:
    with pytest.raises(WireError, match=rf"TrainReply\.{field}: missing or not of type"):
        decode(TrainReply, tampered(encode(REPLY), **{field: value}))


@pytest.mark.parametrize("value", [[0.5, 0.6], "0.5", b"", 1, True])
def test_a_metric_that_is_not_a_number_is_refused(value: Any) -> None:
    record = encode(EvaluateReply(1, {"loss": 0.5}, {"loss": 2.0}))
    with pytest.raises(WireError, match=r"EvaluateReply\.metrics: a metric is not a number"):
        decode(EvaluateReply, tampered(record, **{"metrics/loss": value}))


def blob(header: Any, numbers: bytes = bytes(28)) -> bytes:
    """Return a safetensors file: length of the header, header, numbers."""
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
def test_arrays_that_cannot_be_decoded_are_refused(arrays: Any) -> None:
    with pytest.raises(WireError, match="TrainReply"):
        decode(TrainReply, tampered(encode(REPLY), wire__arrays=arrays))
