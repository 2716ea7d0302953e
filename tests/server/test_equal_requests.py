"""Clients share a request unless what they have to settle differs."""

from dataclasses import replace

import pytest
from flwr.app import RecordDict

from common.wire.codec import decode
from common.wire.messages import TrainRequest
from server.clients.roster import EnrolledClient
from server.round.round import RequestKey
from tests.support.strategies import MODEL, NODES, Server


@pytest.mark.parametrize(("variant", "last"), [("fedga", [0, 0, 0, 0]), ("fedrule", [1, 2, 0, 0])])
def test_only_clients_with_arrays_to_settle_get_requests_of_their_own(variant: str, last: list[int]) -> None:
    server = Server(variant)
    means = {"mean.1": MODEL, "mean.2": MODEL} if variant == "fedrule" else {}
    state = replace(server.strategy.state, round=3, counted={"ann": 1, "bob": 2, "cyd": 3}, memory=means)
    server.strategy.state = state
    encoded: dict[RequestKey, RecordDict] = {}
    clients = [EnrolledClient(name, node, "toy:0", node) for name, node in NODES.items()]
    sent = [server.strategy._encode_for(client, encoded) for client in clients]
    assert [decode(TrainRequest, content).shared_round for content in sent] == last
    assert len(encoded) == len(set(last))
