"""PF-GNN+ between real clients and the real server: what leaves a market, what it keeps, what the server makes of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from flwr.common.serde import message_to_proto

from client.inference.choose_model import models_of_client
from client.policy import Policy
from client.privacy.in_memory import in_memory
from client.session import Session
from client.state import DiskStore, MemoryStore, Store
from client.tasks.learner import Learner
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.data.reader import read_markets
from client.tasks.registry import build_learner
from client.training.cohort import train
from client.training.participant import Participant
from common.arrays import Arrays, sha256
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.pfgnn import PFGNN
from common.models import parameters
from common.options import Scalar
from common.tasks.vocabulary import Vocabulary
from common.wire.messages import AssignReply, CountsReply, EvaluateReply, TrainReply, TrainRequest
from server.artifacts import RunDirectory
from server.run import run
from server.state import RunState
from server.strategies.replies import Reply
from tests.support.build import learner_of, strategy_of, task_model
from tests.support.sensors import Listening, heard

DEMO = read_markets("demo:3-6")  # the three smallest
PHI, PRIVATE = {"phi.mean", "phi.log_variance"}, {"theta", "alpha", "kappa"}


def configured(model: str = "paper", **options: Scalar) -> RunConfig:
    flat: dict[str, Scalar] = {"method": "pfgnn", "task": "markets", "model": model, "run-id": "toy", "rounds": 2}
    flat |= {"tasks.markets.width": 24, "tasks.markets.embedding": 6, "tasks.markets.batch": 64}
    flat |= {"federation.min-clients": 1, "federation.wait": 0.1}
    own: dict[str, Scalar] = {"local_steps": 3, "clusters": 4, **options}
    return parse(flat | {f"algorithm.pfgnn.{key.replace('_', '-')}": value for key, value in own.items()})


def alone(number: int) -> Markets:
    return Markets(DEMO.units[number : number + 1], DEMO.vocabulary)


def session(number: int, store: Store) -> Session:
    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, alone(number))

    return Session(f"client-{number}", learner, store, in_memory(Policy()))


def federated(config: RunConfig, folder: Path) -> tuple[Listening, list[Store], Arrays]:
    """A run of three markets: its messages, what clients keep, the model."""
    stores: list[Store] = [MemoryStore() for _ in DEMO.units]
    grid = Listening({k + 1: session(k, store) for k, store in enumerate(stores)})
    run(grid, config, folder)
    return grid, stores, RunDirectory(folder, "toy").load_model()[0]


def member(config: RunConfig, store: Store, model: Arrays | None = None, number: int = 1) -> Participant:
    learner = learner_of(config, DEMO.vocabulary, alone(0).units)
    request = TrainRequest(number, "toy:0", model or parameters(task_model(config, DEMO.vocabulary)))
    return Participant("client-0", "toy", 0, learner, store, request, config.method_options.local_steps)


def once(config: RunConfig, one: Participant) -> TrainReply:
    [reply] = train(config.method_options, [one])
    assert isinstance(reply, TrainReply)
    return reply


def shared_after(config: RunConfig, model: Arrays, replies: list[TrainReply]) -> Arrays:
    """The server's next model."""
    strategy = strategy_of(config, RunState(0, model), None)
    answers = [Reply(f"client-{k}", 1.0, reply) for k, reply in enumerate(replies)]
    return strategy.update({}, model, answers)[0]


@pytest.mark.parametrize(
    ("options", "leaves"),
    [
        ({}, PHI | {"xi"}),
        ({"summary": "centroid"}, PHI | {"xi"}),
        ({"exchange": "kappa"}, PHI | {"kappa"}),
        ({"plus": False}, PHI),
    ],
    ids=["sum", "centroid", "kappa", "without plus"],
)
def test_exactly_the_encoder_and_the_summary_leave_a_market(
    options: dict[str, Scalar], leaves: set[str], tmp_path: Path
) -> None:
    grid, stores, end = federated(configured("paper", **options), tmp_path)
    replies = heard(grid, TrainReply)
    assert len(replies) == 2 * len(DEMO.units)
    for _, reply in replies:
        assert {name.partition("@")[0] for name in reply.update} == leaves
        assert reply.gradient == {}
    assert not heard(grid, CountsReply)
    assert not heard(grid, AssignReply)

    sent = b"".join(message_to_proto(message).SerializeToString() for message in grid.answered)
    for store in stores:
        kept = store.load("toy").groups["head.after"]
        assert kept.keys() == PRIVATE & end.keys() - leaves
        for name, t in kept.items():
            assert not np.array_equal(t.numpy(), end[name]), f"{name} was trained here, and the server knows nothing"
            rows = [row.tobytes() for row in t.reshape(-1, t.shape[-1]).numpy() if row.any()]
            assert rows, name
            assert not [row for row in rows if row in sent], name
    known = parameters(task_model(configured("paper", **options), DEMO.vocabulary))
    assert all(np.array_equal(end[name], known[name]) for name in end.keys() - leaves)
    assert all(not np.array_equal(end[name], known[name]) for name in leaves)


def test_no_item_pair_or_feature_of_a_market_is_in_any_answer(tmp_path: Path) -> None:
    grid, _, _ = federated(configured(), tmp_path)
    sent = b"".join(message_to_proto(message).SerializeToString() for message in grid.answered)
    for number in range(len(DEMO.units)):
        learner = learner_of(configured(), DEMO.vocabulary, alone(number).units)
        for rows in (learner.pairs, learner.features, learner.propagated):
            assert not [row for row in rows.numpy() if row.tobytes() in sent]
        assert DEMO.units[number].name.encode() not in sent
    assert not any(name.encode() in sent for name in DEMO.vocabulary.items)


def test_the_summary_that_leaves_is_of_the_market_s_own_clusters(tmp_path: Path) -> None:
    config, store = configured(), MemoryStore()
    one = member(config, store)
    reply = once(config, one)
    own = store.load("toy").groups["own.after"]
    mean = one.learner.propagated @ own["phi.mean"]  # type: ignore[attr-defined]
    kernel = 1 / (1 + torch.cdist(mean, own["kappa"]).square())
    xi = (kernel / kernel.sum(1, keepdim=True)).T @ mean
    np.testing.assert_allclose(one.request.model["xi"] - reply.update["xi"], xi.numpy(), rtol=1e-4, atol=1e-5)


def test_what_a_market_keeps_survives_a_restart(tmp_path: Path) -> None:
    config, kept = configured(), MemoryStore()
    first = member(config, kept)
    start = first.request.model
    model = shared_after(config, start, [once(config, first)])
    assert sha256(once(config, member(config, DiskStore(tmp_path))).update) == sha256(
        once(config, member(config, MemoryStore())).update
    )
    second = once(config, member(config, kept, model, 2))
    restarted = once(config, member(config, DiskStore(tmp_path), model, 2))
    assert sha256(second.update) == sha256(restarted.update)
    newcomer = once(config, member(config, MemoryStore(), model, 2))
    assert sha256(second.update) != sha256(newcomer.update), "θ, α and κ of before matter"


def test_a_round_that_is_asked_for_again_is_answered_the_same() -> None:
    config, store = configured(), MemoryStore()
    first = member(config, store)
    once_more = [once(config, first), once(config, first)]
    assert sha256(once_more[0].update) == sha256(once_more[1].update)
    model = shared_after(config, first.request.model, once_more[:1])
    later = replace(first, request=replace(first.request, round=2, model=model))
    assert sha256(once(config, later).update) == sha256(once(config, later).update)


@pytest.mark.parametrize("beta", [0.25, 1.0])
def test_the_server_steps_towards_the_mean_of_its_clients(beta: float) -> None:
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


def test_the_first_summaries_are_taken_whole() -> None:
    config = configured(beta=0.25)
    model = parameters(task_model(config, DEMO.vocabulary))
    xi = np.ones((4, 6), np.float32)
    update = {n: np.zeros_like(model[n]) for n in PHI} | {"xi": -xi}
    np.testing.assert_array_equal(shared_after(config, model, [TrainReply(1, update, {}, 0.0, 5, 3)])["xi"], xi)


def test_a_market_is_measured_with_its_own_model_and_the_shared_one_beside_it(tmp_path: Path) -> None:
    grid, stores, end = federated(configured(), tmp_path)
    config, groups = configured(), stores[0].load("toy").groups
    learner = learner_of(config, DEMO.vocabulary, alone(0).units)
    last = dict(heard(grid, EvaluateReply))["client-0"].metrics
    own = {n: t.numpy() for n, t in groups["own.after"].items()}
    for prefix, model in (("", own), ("global_", end)):
        metrics, _ = learner.evaluate(model, {}, "test")
        assert {name: last[f"{prefix}{name}"] for name in metrics} == metrics
    assert list(models_of_client(config.method_options, end, stores[0].load("toy"))) == ["", "global_"]


def test_of_the_default_model_each_market_fits_its_own_near_the_shared_one(tmp_path: Path) -> None:
    config = configured("default")
    grid, stores, end = federated(config, tmp_path)
    assert {name for _, reply in heard(grid, TrainReply) for name in reply.update} == {"scorer.weight"}
    own = [store.load("toy").groups["own.after"]["scorer.weight"].numpy() for store in stores]
    assert not np.array_equal(own[0], own[1])
    held = configured("default", optimizer="sgd", lambda_w=4e4, lr=1e-5, clip_norm=0.0)
    one = member(held, MemoryStore())
    free = replace(one, store=MemoryStore())
    moved, loose = once(held, one), once(configured("default", optimizer="sgd", lambda_w=0.0, lr=1e-5), free)
    assert np.abs(moved.update["scorer.weight"]).max() < np.abs(loose.update["scorer.weight"]).max()
    assert end.keys() == {"scorer.weight"}


def test_it_runs_on_markets_only() -> None:
    with pytest.raises(ConfigError, match="task=markets"):
        parse({"method": "pfgnn", "task": "rules"})
    assert isinstance(configured().method_options, PFGNN)
