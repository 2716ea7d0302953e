"""Clients share a request unless what they have to settle differs."""

from dataclasses import replace

import pytest

from common.wire.codec import decode
from common.wire.messages import TrainRequest
from tests.support.strategies import MODEL, Server


@pytest.mark.parametrize(("variant", "last"), [("fedga", [0, 0, 0, 0]), ("fedrule", [1, 2, 0, 0])])
def test_only_clients_with_arrays_to_settle_get_requests_of_their_own(variant: str, last: list[int]) -> None:
    server = Server(variant)
    means = {"mean.1": MODEL, "mean.2": MODEL} if variant == "fedrule" else {}
    state = replace(server.strategy.state, round=3, counted={"ann": 1, "bob": 2, "cyd": 3}, memory=means)
    server.strategy.state = state
    messages = [*server.strategy.configure_train(1, ArrayRecord(), ConfigRecord(), Online())]
    assert [decode(TrainRequest, message.content).shared_round for message in messages] == last
    assert len({id(message.content) for message in messages}) == len(set(last))
