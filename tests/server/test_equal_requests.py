"""Clients share a request unless what they have to settle differs."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from flwr.app import ArrayRecord, ConfigRecord, Message

from common.wire.codec import decode
from common.wire.messages import TrainRequest
from tests.support.strategies import MODEL, NODES, Server


class Online:
    """Grid whose nodes are all online."""

    def get_node_ids(self) -> list[int]:
        return [*NODES.values()]

    def send_and_receive(self, messages: Iterable[Message]) -> list[Message]:
        return []


@pytest.mark.parametrize(("variant", "last"), [("fedga", [0, 0, 0, 0]), ("fedrule", [1, 2, 0, 0])])
def test_only_clients_with_arrays_to_settle_get_requests_of_their_own(variant: str, last: list[int]) -> None:
    server = Server(variant)
    means = {"mean.1": MODEL, "mean.2": MODEL} if variant == "fedrule" else {}
    state = replace(server.strategy.state, round=3, counted={"ann": 1, "bob": 2, "cyd": 3}, memory=means)
    server.strategy.state = state
    messages = [*server.strategy.configure_train(1, ArrayRecord(), ConfigRecord(), Online())]
    assert [decode(TrainRequest, message.content).shared_round for message in messages] == last
    assert len({id(message.content) for message in messages}) == len(set(last))
