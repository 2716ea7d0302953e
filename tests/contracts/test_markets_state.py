"""PF-GNN+ between real clients and the real server: client state, server step and evaluation."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from client.inference.model_choice import models_of_client
from client.state import DiskStore, MemoryStore
from common.arrays import sha256
from common.config.parse import parse
from common.errors import ConfigError
from common.methods.pfgnn import PFGNN
from common.models import parameters
from common.wire.messages import EvaluateReply, TrainReply
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
