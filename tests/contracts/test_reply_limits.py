"""Largest reply of each request, as the door has it: no honest reply exceeds it."""

from pathlib import Path

import pytest
from flwr.app import Message

from common.config.run import RunConfig
from common.wire.messages import EVALUATE, TRAIN
from server.exchange import grid
from server.exchange.flower import encode_record
from tests.support.sum_runs import SumFederation, noised, summed

RUNS = {
    "fedavg": summed("fedavg", "local"),
    "fedrule": summed("fedrule", "local"),
    "int8": summed("fedavg", "local", federation__encoding="int8"),
    "clusters": summed("ifca", "local"),
    "closed form": summed("ridge"),
    "masks": summed("fedavg"),
    "noise": noised(),
}


@pytest.mark.parametrize("config", RUNS.values(), ids=RUNS.keys())
def test_no_honest_reply_exceeds_the_limit_of_its_request(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = dict[str, float]()

    def record(reply: Message, asked: Message) -> Message:
        kind, most = asked.metadata.message_type, grid.reply_limit(asked)
        if reply.has_content():
            shares[kind] = max(shares.get(kind, 0.0), len(encode_record(reply.content)) / most)
        return checked(reply, asked)

    checked = grid.refuse_oversize
    monkeypatch.setattr(grid, "refuse_oversize", record)
    SumFederation(tmp_path).run(config)
    assert {TRAIN, EVALUATE} <= shares.keys()
    assert max(shares.values()) <= 1, shares
