"""Per-FedAvg on quadratic clients against closed forms; evaluated models and step inputs on markets."""

from pathlib import Path

import numpy as np
import pytest
import torch
from fedloom_personalization.client import PerFedAvgTrainer
from fedloom_personalization.options import PerFedAvg

from client.data.read import read_all
from client.inference.model_choice import fit_model, models_of_client
from client.inference.stored_models import adapt
from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import ClientMemory, MemoryStore, Store
from client.tasks.learner import Learner
from client.tasks.markets.data.markets import Markets
from client.tasks.registry import build_learner
from client.training.local_round import train
from client.training.participant import ADAPT, Participant, build_generator
from common.arrays import Arrays, sha256
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.models import parameters, tensors
from common.options import Scalar
from common.tasks.vocabulary import Vocabulary
from common.wire.messages import EvaluateReply, TrainReply, TrainRequest
from server.record.folder import RunDirectory
from server.run import run
from tests.support.build import learner_of, task_model
from tests.support.sensors import MEASURES, Listening, heard, road_config, sensor, world
from tests.support.toys import Quadratic, Toy, configured, flat, quadratics

ALPHA, BETA = 0.3, 0.2
DEMO = read_all("markets", "demo:4-5")


def personalized(algorithm: PerFedAvg, participant: Participant) -> ClientMemory:
    return PerFedAvgTrainer(algorithm).personalize(participant)


def toy(count: int = 3, lr: float = BETA, **options: Scalar) -> Toy:
    return Toy(configured("perfedavg", alpha=ALPHA, lr=lr, **options), quadratics(count, seed=1))


def meta(client: Quadratic, w: np.ndarray, *, second_order: bool) -> np.ndarray:
    """Return ∇L(w̃), or (I − αA)∇L(w̃), of ½(w − c)ᵀA(w − c)."""
    gradient: np.ndarray = client.curvature @ (w - ALPHA * client.curvature @ (w - client.centre) - client.centre)
    return gradient - ALPHA * client.curvature @ gradient if second_order else gradient


@pytest.mark.parametrize("variant", ["first-order", "hessian-free"])
def test_a_client_descends_along_gradients_at_adapted_parameters(variant: str) -> None:
    federation = toy(variant=variant, local_steps=3)
    for name, client in federation.clients.items():
        w = federation.model
        for _ in range(3):
            w = w - BETA * meta(client, w, second_order=variant == "hessian-free")
        np.testing.assert_allclose(flat(federation.ask(name).update), federation.model - w, atol=1e-9)


def test_the_reported_loss_is_of_the_shared_model() -> None:
    federation = toy()
    client, away = federation.clients["client-0"], federation.model - federation.clients["client-0"].centre
    assert federation.ask("client-0").loss == pytest.approx(0.5 * away @ client.curvature @ away)


@pytest.mark.parametrize("variant", ["first-order", "hessian-free"])
def test_with_one_step_it_converges_to_a_zero_mean_meta_gradient(variant: str) -> None:
    """ΣMₖ(w − cₖ) = 0, M = A(I − αA) or (I − αA)A(I − αA), the curvature of F_k."""
    federation = toy(variant=variant, local_steps=1, lr=1.0)
    for _ in range(60):
        federation.round()
    eye, bent = np.eye(4), []
    for client in federation.clients.values():
        once = client.curvature @ (eye - ALPHA * client.curvature)
        bent.append((eye - ALPHA * client.curvature) @ once if variant == "hessian-free" else once)
    centers = [client.centre for client in federation.clients.values()]
    expected_model = np.linalg.solve(sum(bent), sum(m @ c for m, c in zip(bent, centers, strict=True)))
    np.testing.assert_allclose(federation.model, expected_model, atol=1e-6)


@pytest.mark.parametrize("steps", [1, 4])
def test_the_adapted_model_is_a_few_plain_steps_from_the_shared_one(steps: int) -> None:
    algorithm, client = PerFedAvg(alpha=ALPHA, optimizer="adam"), quadratics(1)["client-0"]
    model: Arrays = {"encoder.w": np.array([1.0, 2.0]), "predictor.w": np.array([-1.0, 0.5])}
    participant = Participant(
        "ann", "toy", 0, client, MemoryStore(), TrainRequest(1, "toy:0", model, phase=ADAPT), steps
    )
    w = flat(model)
    for _ in range(steps):
        w = w - ALPHA * client.curvature @ (w - client.centre)
    state = personalized(algorithm, participant)
    models = models_of_client(algorithm, model, state)
    np.testing.assert_allclose(flat(models[""]), w)
    assert sha256(models["global_"]) == sha256(model)
    assert participant.store.load("toy").groups == {}, "nothing is saved"


def test_a_diverged_adapted_model_is_replaced_by_the_shared_one() -> None:
    client, model = quadratics(1)["client-0"], {"encoder.w": np.ones(2), "predictor.w": np.ones(2)}
    request = TrainRequest(1, "toy:0", model, phase=ADAPT)
    algorithm = PerFedAvg(alpha=1e200)
    state = personalized(algorithm, Participant("ann", "toy", 0, client, MemoryStore(), request, 3))
    assert sha256(models_of_client(algorithm, model, state)[""]) == sha256(model)


def market_config(**options: Scalar) -> RunConfig:
    flat: dict[str, Scalar] = {"method": "perfedavg", "task": "markets", "model": "paper", "run-id": "toy", "rounds": 2}
    flat |= {"tasks.markets.width": 16, "tasks.markets.embedding": 4, "tasks.markets.batch": 64}
    flat |= {"federation.min-clients": 1, "federation.wait": 0.1, "algorithm.perfedavg.alpha": 0.5}
    return parse(flat | options)


def market_session(store: Store) -> Session:
    def learner(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, Markets(DEMO.units[:1], DEMO.vocabulary))

    return Session("client-0", learner, store, in_memory(Policy()))


def test_each_gradient_of_a_step_has_separate_triples() -> None:
    config = market_config()
    learner = learner_of(config, DEMO.vocabulary, DEMO.units[:1])
    model = parameters(task_model(config, DEMO.vocabulary))
    participant = Participant("ann", "toy", 0, learner, MemoryStore(), TrainRequest(1, "toy:0", model), 2)
    [reply] = train(PerFedAvg(alpha=0.5, lr=0.3), [participant])
    assert isinstance(reply, TrainReply)

    triples = learner.step_inputs(4, build_generator(participant))["triples"]
    assert not torch.equal(triples[0], triples[1])

    def gradient(params: dict[str, torch.Tensor], step: int) -> dict[str, torch.Tensor]:
        leaves = {n: p.clone().requires_grad_() for n, p in params.items()}
        torch.autograd.backward(learner.loss(leaves, learner.batch(participant.request), {"triples": triples[step]}))
        return {n: p.grad if p.grad is not None else torch.zeros_like(p) for n, p in leaves.items()}

    params = tensors(model)
    for step in (0, 2):
        first = gradient(params, step)
        second = gradient({n: p - 0.5 * first[n] for n, p in params.items()}, step + 1)
        params = {n: p - 0.3 * second[n] for n, p in params.items()}
    for name, sent in reply.update.items():
        np.testing.assert_allclose(sent, model[name] - params[name].numpy(), rtol=1e-4, atol=1e-7)


def test_a_client_evaluates_its_adapted_model_and_stores_the_final_one(tmp_path: Path) -> None:
    config, store = market_config(), MemoryStore()
    grid = Listening({1: market_session(store)})
    run(grid, config, tmp_path)
    end, _ = RunDirectory(tmp_path, "toy").load_model()
    learner = learner_of(config, DEMO.vocabulary, DEMO.units[:1])
    request = TrainRequest(2, "toy:0", end, phase=ADAPT)
    own = personalized(PerFedAvg(alpha=0.5), Participant("client-0", "toy", 0, learner, MemoryStore(), request, 1))
    models = models_of_client(config.method_options, end, own)
    last = dict(heard(grid, EvaluateReply))["client-0"].metrics
    for prefix, model in models.items():
        metrics, _ = learner.evaluate(model, {}, "test")
        assert {name: last[f"{prefix}{name}"] for name in metrics} == metrics
    assert sha256(models[""]) == sha256(models_of_client(config.method_options, end, store.load("toy"))[""])
    assert sha256(models[""]) != sha256(end)


def test_a_late_joining_client_adapts_without_training_rounds() -> None:
    store, config = MemoryStore(), market_config()
    model = parameters(task_model(config, DEMO.vocabulary))
    metrics = adapt(market_session(store), config, DEMO.vocabulary, model)
    assert {"mrr20", "global_mrr20"} <= metrics.keys()
    assert (store.load("toy").round, list(store.load("toy").groups)) == (0, ["own.after"])


def test_a_late_joining_sensor_forecasts_with_its_adapted_model() -> None:
    config = road_config("perfedavg", model="paper", alpha=0.1)
    learner, start = learner_of(config, MEASURES, (sensor(1),)), world(config)
    own = fit_model(config, learner, start, {})
    assert own.keys() == start.keys()
    assert sha256(own) != sha256(start)
    assert learner.evaluate(own, {}, "test") != learner.evaluate(start, {}, "test")


def test_noise_on_records_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"set privacy.unit=client"):
        parse({"method": "perfedavg", "privacy.unit": "record"})
    assert parse({"method": "perfedavg", "privacy.unit": "client"}).needs_planner
