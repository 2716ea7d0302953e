"""Delivered model of a planned run: that of the best validated round, with the layers that clients had in it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load

from client.inference.model_choice import models_of_client
from client.privacy.simulation import in_memory
from client.session import MODEL, Session
from client.state import ClientMemory, MemoryStore, Store
from client.tasks.learner import Learner
from client.tasks.ratings.data.generator import demo_raters
from client.tasks.ratings.data.raters import Rater, Ratings
from client.tasks.registry import build_learner
from client.training.state import keep_round, return_to_round
from common.arrays import Arrays, sha256
from common.config.parse import parse
from common.config.run import RunConfig
from common.methods.fedavg import FedAvg
from common.options import Scalar
from common.tasks.ratings.vocabulary import demo_products
from deploy.simulation.grid import InProcessGrid
from deploy.simulation.state import KeptState, simulate_measured
from server.aggregation.metrics import Evaluation
from server.record.folder import BEST_MODEL, RunDirectory
from server.record.journal import Journal
from server.record.result import Best, Result
from server.run import run
from tests.support.kills import killed_at
from tests.support.owners import SHARING, listening

PRODUCTS = demo_products()
RATERS = tuple(demo_raters(0, 3, seed=0))


def config(**options: Scalar) -> RunConfig:
    flat: dict[str, Scalar] = {
        "method": "bgtplanner",
        "task": "ratings",
        "model": "paper",
        "rounds": 6,
        "run-id": "toy",
    }
    flat |= {"privacy.unit": "client", "privacy.epsilon": 20.0, "algorithm.bgtplanner.arms": 2, "training.lr": 0.5}
    flat |= {"federation.min-clients": 3, "tasks.ratings.embedding-std": 0.3, "algorithm.bgtplanner.t0": 1}
    return parse(flat | {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()})


def train(folder: Path, **options: Scalar) -> tuple[Result, dict[str, Session], RunConfig]:
    sessions = {k + 1: session(rater, k) for k, rater in enumerate(RATERS)}
    chosen = config(**options)
    result = run(InProcessGrid(sessions, 1), chosen, folder)
    return result, {one.client: one for one in sessions.values()}, chosen


def session(rater: Rater, number: int) -> Session:
    rng = np.random.default_rng(number)
    return Session(
        rater.name, lambda chosen, _: learner_of(rater, chosen), MemoryStore(), in_memory(SHARING, lambda: rng)
    )


def learner_of(rater: Rater, chosen: RunConfig) -> Learner:
    return build_learner(chosen, Ratings((rater,), PRODUCTS))


def best_of(result: Result) -> Best:
    assert result.best is not None
    return result.best


def validated(client: str, chosen: RunConfig, model: Arrays, store: Store) -> float:
    """Return the RMSE on validation data of the model that a client uses."""
    [rater] = [one for one in RATERS if one.name == client]
    used = models_of_client(chosen.method_options, model, store.load("toy"))[""]
    return learner_of(rater, chosen).evaluate(used, {}, "validation")[0]["rmse"]


def test_a_planned_run_delivers_its_best_round_with_the_layers_of_that_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Evaluation] = []
    monkeypatch.setattr(Journal, "record_evaluation", listening(seen))
    result, sessions, chosen = train(tmp_path)
    best, (model, _) = best_of(result), RunDirectory(tmp_path, "toy").load_model(BEST_MODEL)
    assert best.round < result.rounds_done
    assert best.test != result.metrics
    for name, client in sessions.items():
        delivered = {n: a for n, a in load(client.store.read("toy", MODEL)).items() if n in model}
        assert sha256(delivered) == sha256(model)
        assert validated(name, chosen, model, client.store) == seen[best.round - 1].clients[name]["rmse"]
    assert any("federation.deliver=best" in channel for channel in result.privacy.uncovered)


def test_a_run_may_deliver_its_last_model(tmp_path: Path) -> None:
    result, sessions, chosen = train(tmp_path, federation__deliver="last")
    assert best_of(result).test == {}
    assert not (tmp_path / "toy" / BEST_MODEL).exists()
    assert not any("federation.deliver" in channel for channel in result.privacy.uncovered)
    for name, client in sessions.items():
        assert client.store.read("toy", "round-1.safetensors") == b""
        assert sha256(load(client.store.read("toy", MODEL))) == result.model_sha256
        assert np.isfinite(validated(name, chosen, load(client.store.read("toy", MODEL)), client.store))


def test_the_last_round_uses_the_state_itself() -> None:
    store = MemoryStore()
    for number in (1, 2, 3):
        store.save("toy", ClientMemory(number, {"head.after": {"user": torch.full((2,), float(number))}}))
        keep_round(store, "toy", number)
    earlier = return_to_round(store, "toy", store.load("toy"), 2)
    assert models_of_client(FedAvg(), {}, earlier)[""]["user"].tolist() == [2.0, 2.0]
    last = return_to_round(store, "toy", earlier, 3)
    assert models_of_client(FedAvg(), {}, last)[""]["user"].tolist() == [3.0, 3.0]
    assert return_to_round(store, "toy", last, 3) is last


def test_layers_that_were_not_kept_are_those_of_the_last_round() -> None:
    store = MemoryStore()
    store.save("toy", ClientMemory(3, {"head.after": {"user": torch.ones(2)}}))
    assert return_to_round(store, "toy", store.load("toy"), 1).groups.keys() == {"head.after"}


def test_a_killed_run_with_wide_arms_delivers_the_bits_of_an_unbroken_one(tmp_path: Path) -> None:
    chosen = config(rounds=4, algorithm__bgtplanner__arms_kind="wide", algorithm__bgtplanner__context=0)
    data = [Ratings((rater,), PRODUCTS) for rater in RATERS]

    def simulated(runs: Path, *, resume: bool = False) -> tuple[Best | None, str, str]:
        changed = chosen.model_copy(update={"resume": resume})
        result = simulate_measured(changed, data, runs, together=1, noise_seed=7, state=KeptState())[0]
        return result.best, result.reason, sha256(RunDirectory(runs, "toy").load_model(BEST_MODEL)[0])

    with killed_at() as steps:
        through = simulated(tmp_path / "through")
    with killed_at(len(steps.names) // 2):
        simulated(tmp_path / "killed")
    assert simulated(tmp_path / "killed", resume=True) == through
