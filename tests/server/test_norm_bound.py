"""Replies that count at the typical norm."""

from dataclasses import replace

import numpy as np
import pytest

from common.arrays import norm
from server.aggregation.lengths import measure
from server.aggregation.replies import Reply, shorten
from tests.support.strategies import reply_of


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_shortened_reply_keeps_its_direction_wherever_its_arrays_are(is_stored: bool) -> None:
    train = reply_of("ann")
    reply = Reply("ann", 1.0, train, lengths=measure(train))
    if is_stored:
        stored = {"update": lambda: train.update, "gradient": lambda: train.gradient}
        reply = replace(reply, train=replace(train, update={}, gradient={}), stored=stored)
    short = shorten(reply, {"update": 0.25})
    assert norm(short.update) == pytest.approx(0.25 * norm(train.update))
    assert short.lengths == {"update": 0.25 * reply.lengths["update"], "gradient": reply.lengths["gradient"]}
    for name, a in train.update.items():
        np.testing.assert_array_equal(short.update[name], a / 4)
        assert short.update[name].dtype == a.dtype
        np.testing.assert_array_equal(short.gradient[name], train.gradient[name])


def test_a_clipped_table_keeps_row_ids_and_numbers_of_clients() -> None:
    table = {"pairs@rows": np.array([3, 8], np.int32), "pairs@values": np.array([[40.0, 1.0], [80.0, 1.0]], np.float32)}
    train = replace(reply_of("ann"), update=table, gradient={})
    short = shorten(Reply("ann", 1.0, train, lengths=measure(train)), {"update": 0.25}, counts_clients=True)
    assert short.update["pairs@rows"].tolist() == [3, 8]
    assert short.update["pairs@values"].tolist() == [[10.0, 1.0], [20.0, 1.0]]
