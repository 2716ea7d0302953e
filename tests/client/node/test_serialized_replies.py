"""Contents of replies: the bytes are Flower's."""

from flwr.app import ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.common.serde import recorddict_to_proto

from client.node.flower import serialize


def test_a_content_has_the_bytes_that_flower_gives_it() -> None:
    mixed = ConfigRecord(
        {"n": 3, "b": True, "x": 0.5, "many": [b"a", b"b"], "arrays": b"\0" * 5000, "none": b"", "z": "e"}
    )
    content = RecordDict(
        {"reply": mixed, "plain": ConfigRecord({"n": 1}), "m": MetricRecord({"a": 1.0}), "a": ArrayRecord()}
    )
    assert serialize(content) == recorddict_to_proto(content).SerializeToString()
    assert serialize(RecordDict()) == b""
