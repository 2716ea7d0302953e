"""PF-GNN+ between real clients and the real server: uploads, client state, server step and evaluation."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from flwr.common.serde import message_to_proto

from client.inference.model_choice import models_of_client
from client.state import DiskStore, MemoryStore
from client.tasks.learner import Learner
from client.tasks.markets.learner import MarketsLearner
from client.tasks.markets.networks import TripleSource
from common.arrays import sha256
from common.config.parse import parse
from common.errors import ConfigError
from common.methods.pfgnn import PFGNN
from common.models import parameters
from common.options import Scalar
from common.wire.messages import AssignReply, EvaluateReply, TrainReply
from tests.support.build import learner_of, task_model
from tests.support.markets import DEMO, PHI, PRIVATE, configured, federated, market, once, participant, shared_after
from tests.support.sensors import heard


def test_client_state_survives_a_restart(tmp_path: Path) -> None:
    config, store = configured(), MemoryStore()
    first = participant(config, store)
    start = first.request.model
    model = shared_after(config, start, [once(config, first)])
    assert sha256(once(config, participant(config, DiskStore(tmp_path))).update) == sha256(
        once(config, participant(config, MemoryStore())).update
    )
    second = once(config, participant(config, store, model, 2))
    restarted = once(config, participant(config, DiskStore(tmp_path), model, 2))
    assert sha256(second.update) == sha256(restarted.update)
    fresh = once(config, participant(config, MemoryStore(), model, 2))
    assert sha256(second.update) != sha256(fresh.update), "θ, α and κ of before matter"


def test_a_repeated_round_has_equal_replies() -> None:
    config, store = configured(), MemoryStore()
    first = participant(config, store)
    once_more = [once(config, first), once(config, first)]
    assert sha256(once_more[0].update) == sha256(once_more[1].update)
    model = shared_after(config, first.request.model, once_more[:1])
    later = replace(first, request=replace(first.request, round=2, model=model))
    assert sha256(once(config, later).update) == sha256(once(config, later).update)


@pytest.mark.parametrize("beta", [0.25, 1.0])
def test_the_server_steps_towards_the_mean_of_the_clients(beta: float) -> None:
    config, rng = configured(beta=beta), np.random.default_rng(0)
    model = parameters(task_model(config, DEMO.vocabulary)) | {"xi": rng.normal(size=(4, 6)).astype(np.float32)}
    ends = [{n: rng.normal(size=model[n].shape).astype(np.float32) for n in (*PHI, "xi")} for _ in range(3)]
    replies = [
        TrainReply(1, {n: model[n] - a for n, a in end.items()}, {}, 0.0, 5, steps)
        for end, steps in zip(ends, (3, 3, 1), strict=True)  # a solution counts as one, however many steps it took
    ]
    after = shared_after(config, model, replies)
    for name in (*PHI, "xi"):
        mean = np.mean([end[name] for end in ends], axis=0)
        np.testing.assert_allclose(after[name], (1 - beta) * model[name] + beta * mean, rtol=1e-4, atol=1e-5)
    assert all(after[name] is model[name] for name in PRIVATE)


def test_the_first_summary_is_not_damped() -> None:
    config = configured(beta=0.25)
    model = parameters(task_model(config, DEMO.vocabulary))
    xi = np.ones((4, 6), np.float32)
    update = {n: np.zeros_like(model[n]) for n in PHI} | {"xi": -xi}
    np.testing.assert_array_equal(shared_after(config, model, [TrainReply(1, update, {}, 0.0, 5, 3)])["xi"], xi)


def test_a_market_evaluates_its_personalized_and_the_shared_model(tmp_path: Path) -> None:
    grid, stores, end = federated(configured(), tmp_path)
    config, groups = configured(), stores[0].load("toy").groups
    learner = learner_of(config, DEMO.vocabulary, market(0).units)
    last = dict(heard(grid, EvaluateReply))["client-0"].metrics
    own = {n: t.numpy() for n, t in groups["own.after"].items()}
    for prefix, model in (("", own), ("global_", end)):
        metrics, _ = learner.evaluate(model, {}, "test")
        assert {name: last[f"{prefix}{name}"] for name in metrics} == metrics
    assert list(models_of_client(config.method_options, end, stores[0].load("toy"))) == ["", "global_"]


def test_each_market_fits_a_default_model_near_the_shared_one(tmp_path: Path) -> None:
    config = configured("default")
    grid, stores, end = federated(config, tmp_path)
    assert {name for _, reply in heard(grid, TrainReply) for name in reply.update} == {"scorer.weight"}
    own = [store.load("toy").groups["own.after"]["scorer.weight"].numpy() for store in stores]
    assert not np.array_equal(own[0], own[1])
    held = configured("default", optimizer="sgd", lambda_w=4e4, lr=1e-5, clip_norm=0.0)
    one = participant(held, MemoryStore())
    free = replace(one, store=MemoryStore())
    moved, loose = once(held, one), once(configured("default", optimizer="sgd", lambda_w=0.0, lr=1e-5), free)
    assert np.abs(moved.update["scorer.weight"]).max() < np.abs(loose.update["scorer.weight"]).max()
    assert end.keys() == {"scorer.weight"}


def test_it_runs_on_markets_only() -> None:
    with pytest.raises(ConfigError, match="task=markets"):
        parse({"method": "pfgnn", "task": "rules"})
    assert isinstance(configured().method_options, PFGNN)


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
