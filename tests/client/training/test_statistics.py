"""Clients of a method in closed form: statistics in place of updates, through the path of all methods."""

import numpy as np
import pytest

from client.privacy.transforms import update_of
from client.secure.upload import Blocks
from client.state import MemoryStore
from client.training.local_round import train, train_together, zero_reply
from client.training.participant import Participant
from common.config.run import RunConfig
from common.contribution import UPDATE, BlockReply
from common.models import parameters
from common.secure.layout import SumLayout
from common.wire.messages import TrainReply, TrainRequest
from tests.support.build import learner_of, task_model
from tests.support.closed_form import CLIENT, SPEC, STATISTIC
from tests.support.plugins import install
from tests.support.toys import CATALOGUE, configured, toy_homes


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    groups = {"fedloom.methods": {SPEC.name: SPEC}, "fedloom.methods.client": {SPEC.name: CLIENT}}
    install(monkeypatch, groups)
    return configured(SPEC.name)


def participants(config: RunConfig, count: int = 4) -> list[Participant]:
    request = TrainRequest(1, "toy:0", parameters(task_model(configured("fedavg"), CATALOGUE)))
    return [
        Participant(f"c{k}", "toy", 0, learner_of(config, CATALOGUE, [home]), MemoryStore(), request, 1)
        for k, home in enumerate(toy_homes(count))
    ]


def expected(clients: list[Participant]) -> list[np.ndarray]:
    labels = [client.batch()["labels"].numpy().ravel().astype(np.float32) for client in clients]
    return [np.array([y.size, y.sum(), np.square(y).sum()], np.float32) for y in labels]


def test_a_single_reply_has_the_statistics_of_the_client(config: RunConfig) -> None:
    clients = participants(config)
    replies = train(config.method_options, clients)
    for reply, values in zip(replies, expected(clients), strict=True):
        assert isinstance(reply, TrainReply)
        assert (reply.update.keys(), reply.gradient) == ({STATISTIC}, {})
        np.testing.assert_array_equal(reply.update[STATISTIC], values)


def test_a_block_sums_them(config: RunConfig) -> None:
    clients = participants(config)
    replies, block = train_together(config.method_options, clients).sum_up(0, lambda lengths, losses: [1], 1_000)
    assert [isinstance(reply, BlockReply) for reply in replies] == [True, False, True, True]
    values = expected(clients)
    np.testing.assert_allclose(block.sums.sums[UPDATE][STATISTIC], values[0] + values[2] + values[3])
    assert block.sums.weight == 3


def test_a_secure_sum_has_their_layout(config: RunConfig) -> None:
    [client] = participants(config, 1)
    blocks = Blocks(config, client.steps)
    zeros = zero_reply(config.method_options, client.learner, client.request, client.steps)
    template = blocks.of(update_of(zeros)).arrays
    [reply] = train(config.method_options, [client])
    assert isinstance(reply, TrainReply)
    vector = SumLayout.of(template).vector(blocks.of(update_of(reply)).arrays)
    np.testing.assert_array_equal(vector[-3:], expected([client])[0])
    assert not any(a.any() for a in template.values())
