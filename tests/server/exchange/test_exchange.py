"""Sizes of contents."""

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from server.exchange.grid import content_size

ARRAYS = ArrayRecord([np.zeros(8, np.float32)])
CONFIG = ConfigRecord({"a": "text", "b": b"bytes", "c": True, "d": 3, "e": [1.0, 2.0], "f": ["x", "yz"]})
METRICS = MetricRecord({"loss": 0.5, "steps": [1, 2, 3]})


@pytest.mark.parametrize("record", [ARRAYS, CONFIG, METRICS])
def test_a_size_is_the_one_that_flower_counts(record: ArrayRecord | ConfigRecord | MetricRecord) -> None:
    assert content_size(RecordDict({"fedloom": record})) == record.count_bytes()


def test_empty_texts_and_lists_of_a_client_have_a_size() -> None:
    """Flower's own count raises on both, and would end the round of all clients."""
    record = ConfigRecord({"name": "", "blob": b"", "list": []})
    with pytest.raises((ValueError, IndexError)):
        record.count_bytes()
    assert content_size(RecordDict({"fedloom": record})) == len("namebloblist")
