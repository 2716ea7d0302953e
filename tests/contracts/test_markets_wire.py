"""PF-GNN+ between real clients and the real server: uploads."""

from pathlib import Path

import numpy as np
import pytest
import torch
from flwr.common.serde import message_to_proto

from client.state import MemoryStore
from client.tasks.learner import Learner
from client.tasks.markets.learner import MarketsLearner
from client.tasks.markets.networks import TripleSource
from common.models import parameters
from common.options import Scalar
from common.wire.messages import AssignReply, TrainReply
from tests.support.build import learner_of, task_model
from tests.support.markets import DEMO, PHI, PRIVATE, configured, federated, market, once, participant
from tests.support.sensors import heard


def triple_source(learner: Learner) -> TripleSource:
    assert isinstance(learner, MarketsLearner)
    return learner.triple_source


@pytest.mark.parametrize(
    ("options", "sent_names"),
    [
        ({}, PHI | {"xi"}),
        ({"summary": "centroid"}, PHI | {"xi"}),
        ({"exchange": "kappa"}, PHI | {"kappa"}),
        ({"plus": False}, PHI),
    ],
    ids=["sum", "centroid", "kappa", "without plus"],
)
def test_a_market_sends_exactly_the_encoder_and_the_summary(
    options: dict[str, Scalar], sent_names: set[str], tmp_path: Path
) -> None:
    grid, stores, end = federated(configured("paper", **options), tmp_path)
    replies = heard(grid, TrainReply)
    assert len(replies) == 2 * len(DEMO.units)
    for _, reply in replies:
        assert {name.partition("@")[0] for name in reply.update} == sent_names
        assert reply.gradient == {}
    assert not heard(grid, AssignReply)

    sent = b"".join(message_to_proto(message).SerializeToString() for message in grid.answered)
    for store in stores:
        private = store.load("toy").groups["head.after"]
        assert private.keys() == PRIVATE & end.keys() - sent_names
        for name, t in private.items():
            assert not np.array_equal(t.numpy(), end[name]), f"{name} was trained here, and the server knows nothing"
            rows = [row.tobytes() for row in t.reshape(-1, t.shape[-1]).numpy() if row.any()]
            assert rows, name
            assert not [row for row in rows if row in sent], name
    initial = parameters(task_model(configured("paper", **options), DEMO.vocabulary))
    assert all(np.array_equal(end[name], initial[name]) for name in end.keys() - sent_names)
    assert all(not np.array_equal(end[name], initial[name]) for name in sent_names)


def test_no_reply_contains_an_item_a_pair_or_a_feature(tmp_path: Path) -> None:
    grid, _, _ = federated(configured(), tmp_path)
    sent = b"".join(message_to_proto(message).SerializeToString() for message in grid.answered)
    for number in range(len(DEMO.units)):
        source = triple_source(learner_of(configured(), DEMO.vocabulary, market(number).units))
        for rows in (source.pairs, source.features, source.propagated):
            assert not [row for row in rows.numpy() if row.tobytes() in sent]
        assert DEMO.units[number].name.encode() not in sent
    assert not any(name.encode() in sent for name in DEMO.vocabulary.items)


def test_the_sent_summary_is_of_the_market_s_clusters(tmp_path: Path) -> None:
    config, store = configured(), MemoryStore()
    one = participant(config, store)
    reply = once(config, one)
    own = store.load("toy").groups["own.after"]
    mean = triple_source(one.learner).propagated @ own["phi.mean"]
    kernel = 1 / (1 + torch.cdist(mean, own["kappa"]).square())
    xi = (kernel / kernel.sum(1, keepdim=True)).T @ mean
    np.testing.assert_allclose(one.request.model["xi"] - reply.update["xi"], xi.numpy(), rtol=1e-4, atol=1e-5)
