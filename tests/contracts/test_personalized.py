"""Methods with personalized models: training phases, uploads and client state."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from client.inference.model_choice import models_of_client
from client.state import MemoryStore
from client.training.local_round import train
from client.training.participant import Participant
from common.arrays import Arrays, sha256
from common.methods.base import MethodOptions
from common.methods.fedavg import FedAvg
from common.methods.fedstl import FedSTL
from common.methods.personalized import Ditto, FedRep, Local
from common.options import Scalar
from common.wire.messages import CLUSTER, AssignReply, EnrolRequest, EvaluateReply, TrainReply, TrainRequest
from server.clients.enrolment import Enrolment
from server.record.folder import RunDirectory
from server.round.state import RunState
from server.run import run
from tests.support.build import head_of, learner_of, round_of
from tests.support.sensors import MEASURES, Listening, heard, road_config, road_grid, sensor, session, world
from tests.support.toys import Quadratic, flat, quadratic_model, quadratics

ENCODER, HEAD = np.arange(4) < 2, np.arange(4) >= 2
"""Masks of the quadratic clients' four numbers: shared ones, and those of the head."""

CLIENT: Quadratic = quadratics(1, seed=4)["client-0"]


def participant(
    number: int = 1, model: Arrays | None = None, like: Participant | None = None, phase: str = "local"
) -> Participant:
    request = TrainRequest(number, "toy:0", model or quadratic_model(), phase=phase)
    return Participant("ann", "toy", 0, CLIENT, like.store if like else MemoryStore(), request, 3)


def once(options: MethodOptions, one: Participant) -> TrainReply:
    [reply] = train(options, [replace(one, steps=options.steps(one.request.phase))])
    assert isinstance(reply, TrainReply)
    return reply


def stored(one: Participant, group: str) -> Arrays:
    return {n: t.numpy() for n, t in one.store.load("toy").groups[f"{group}.after"].items()}


def descend_by_hand(start: np.ndarray, masks: list[np.ndarray], rate: float = 0.1) -> np.ndarray:
    """Run gradient descent on the quadratic by hand; step t changes the numbers of mask t."""
    for mask in masks:
        start = start - rate * mask * (CLIENT.curvature @ (start - CLIENT.centre))
    return start


def other_model(seed: int) -> Arrays:
    """Return a model of the server whose head the client does not use."""
    rng = np.random.default_rng(seed)
    return {"encoder.w": rng.normal(size=2), "predictor.w": rng.normal(size=2)}


PRIVATE: dict[str, tuple[MethodOptions, list[np.ndarray]]] = {
    "together": (FedRep(lr=0.1, local_steps=3), [ENCODER | HEAD] * 3),
    "head first": (FedRep(lr=0.1, local_steps=3, head_steps=2), [HEAD, HEAD, ENCODER]),
    "fedstl": (FedSTL(lr=0.1, local_steps=3, clip_norm=0.0), [ENCODER | HEAD] * 3),
}


@pytest.mark.parametrize(("options", "masks"), PRIVATE.values(), ids=PRIVATE.keys())
def test_a_private_head_is_stored_and_trained_further(options: MethodOptions, masks: list[np.ndarray]) -> None:
    first = participant()
    reply = once(options, first)
    after = descend_by_hand(np.zeros(4), masks)
    assert reply.update.keys() == {"encoder.w"}
    np.testing.assert_allclose(reply.update["encoder.w"], -after[ENCODER])
    np.testing.assert_allclose(stored(first, "head")["predictor.w"], after[HEAD])

    model = other_model(1)
    second = participant(2, model, first)
    reply = once(options, second)
    start = np.concatenate([model["encoder.w"], after[HEAD]])
    after_second = descend_by_hand(start, masks)
    np.testing.assert_allclose(reply.update["encoder.w"], (start - after_second)[ENCODER])
    np.testing.assert_allclose(stored(second, "head")["predictor.w"], after_second[HEAD])


@pytest.mark.parametrize(
    "options",
    [FedRep(head_steps=1), Ditto(), Local(), FedSTL(), FedRep(optimizer="adam", lr=0.02), Local(optimizer="adam")],
    ids=lambda a: f"{a.name}-{a.optimizer}",
)
def test_a_replayed_round_has_equal_results(options: MethodOptions) -> None:
    before = participant()
    once(options, before)
    later = participant(2, other_model(1), before)
    first, state = once(options, later), later.store.load("toy")
    once(options, replace(later, request=replace(later.request, phase=CLUSTER)))
    again, replayed = once(options, later), later.store.load("toy")
    assert sha256(again.update) == sha256(first.update)
    assert replayed.groups.keys() == state.groups.keys()
    for group, named in state.groups.items():
        assert all(torch.equal(t, replayed.groups[group][n]) for n, t in named.items()), group


def test_cluster_steps_change_shared_layers_only_and_no_client_state() -> None:
    options = FedSTL(lr=0.1, local_steps=3, cluster_steps=4, clip_norm=0.0)
    local = participant()
    once(options, local)
    state, head, model = local.store.load("toy"), stored(local, "head")["predictor.w"], other_model(2)
    reply = once(options, participant(1, model, local, CLUSTER))
    start = np.concatenate([model["encoder.w"], head])
    assert (reply.steps, reply.update.keys()) == (4, {"encoder.w"})
    np.testing.assert_allclose(reply.update["encoder.w"], (start - descend_by_hand(start, [ENCODER] * 4))[ENCODER])
    assert local.store.load("toy") is state


def test_the_order_of_layers_does_not_change_the_bits() -> None:
    """Decoded layers have any order, and the norm of clipping is a sum over the layers."""
    config, rng = road_config("fedstl", model="paper", lr=1.0, clip_norm=0.5), np.random.default_rng(0)
    learner, start = learner_of(config, MEASURES, (sensor(1),)), world(config)
    ends = set()
    for _ in range(12):
        request = TrainRequest(1, "toy:0", {n: start[n] for n in rng.permutation(list(start)).tolist()})
        one = Participant("ann", "toy", 0, learner, MemoryStore(), request, 2)
        ends.add(sha256(once(config.method_options, one).update))
    assert len(ends) == 1


@pytest.mark.parametrize("pull", [0.0, 0.5, 2.0])
def test_ditto_trains_a_personalized_model_beside_the_global_one(pull: float) -> None:
    """Train v ← v − η(∇L(v) + λ(v − θ)) from its last value, θ being the model of the round; the upload is FedAvg's."""
    own, before = np.zeros(4), participant()
    for number in (1, 2, 3):
        model = other_model(number)
        one = participant(number, model, before)
        reply = once(Ditto(lr=0.1, local_steps=3, pull=pull), one)
        own = flat(model) if number == 1 else own
        for _ in range(3):
            own = own - 0.1 * (CLIENT.curvature @ (own - CLIENT.centre) + pull * (own - flat(model)))
        np.testing.assert_allclose(flat(stored(one, "own")), own)
        assert sha256(reply.update) == sha256(once(FedAvg(lr=0.1, local_steps=3), participant(number, model)).update)


def test_a_diverged_personalized_model_is_an_error_and_not_stored() -> None:
    one = replace(participant(), steps=40)
    [error] = train(Ditto(lr=0.1, pull=1e30), [one])
    assert "training diverged" in str(error)
    assert one.store.load("toy").groups == {}


def test_the_personalized_and_the_shared_model_are_evaluated() -> None:
    for options, own, prefixes in (
        (FedAvg(), False, [""]),
        (FedRep(), False, [""]),
        (Local(), False, [""]),
        (Ditto(), True, ["", "global_"]),
        (FedSTL(), True, ["", "cluster_"]),
    ):
        one, model = participant(), other_model(3)
        assert all(sha256(m) == sha256(model) for m in models_of_client(options, model, one.store.load("toy")).values())
        once(options, one)
        state = one.store.load("toy")
        models = models_of_client(options, model, state)
        head = stored(one, "head") if "head.after" in state.groups else {}
        assert list(models) == prefixes
        assert sha256(list(models.values())[-1]) == sha256({**model, **head})
        assert sha256(models[""]) == sha256(stored(one, "own") if own else {**model, **head})


def test_local_training_continues_from_its_state_and_sends_nothing() -> None:
    one, options = participant(), Local(lr=0.1, local_steps=3)
    assert once(options, one).update == {}
    assert once(options, participant(2, other_model(1), one)).update == {}
    np.testing.assert_allclose(flat(stored(one, "head")), descend_by_hand(np.zeros(4), [ENCODER | HEAD] * 6))


@pytest.mark.parametrize(("network", "model"), [("gru", "default"), ("lstm", "paper"), ("transformer", "paper")])
@pytest.mark.parametrize("method", ["fedrep", "fedstl", "local"])
def test_replies_contain_no_head_and_the_server_s_head_never_changes(
    method: str, network: str, model: str, tmp_path: Path
) -> None:
    few: dict[str, Scalar] = {"clusters": 2} if method == "fedstl" else {}
    config = road_config(method, model=model, tasks__traffic__network=network, rounds=1, **few)
    grid = road_grid([MemoryStore() for _ in range(2)], Listening)
    run(grid, config, tmp_path)
    start, end = world(config), RunDirectory(tmp_path, "toy").load_model()[0]
    private = set(start) if method == "local" else head_of("traffic", start)
    sent = [{name.partition("@")[0] for name in reply.update} for _, reply in heard(grid, TrainReply)]
    assert sent == [start.keys() - private] * (4 if method == "fedstl" else 2)
    assert all(reply.property.keys() == {"low", "high", "days"} for _, reply in heard(grid, AssignReply))

    enrolment = Enrolment(EnrolRequest("toy", "{}", "{}"), 0.0, lambda messages, seconds: [])
    fresh = round_of(config, RunState(0, start), enrolment).state.model
    changed = {name for name in end if not np.array_equal(end[name], fresh[name])}
    assert fresh.keys() == end.keys()
    assert head_of("traffic", {name.split("/")[-1] for name in changed}) == frozenset()
    assert bool(changed) == (method != "local")


@pytest.mark.parametrize("method", ["fedrep", "fedstl"])
def test_a_client_is_evaluated_with_its_private_head(method: str, tmp_path: Path) -> None:
    config, stores = road_config(method, model="paper"), [MemoryStore(), MemoryStore()]
    grid = road_grid(stores, Listening)
    run(grid, config, tmp_path)
    learner = session("x", (sensor(1),)).build_learner(config, MEASURES)
    shared = RunDirectory(tmp_path, "toy").load_model()[0]
    groups = stores[1].load("toy").groups
    if method == "fedstl":
        own = {n: t.numpy() for n, t in groups["own.after"].items()}
    else:
        own = {**shared, **{n: t.numpy() for n, t in groups["head.after"].items()}}
    last = dict(heard(grid, EvaluateReply))["client-1"]
    expected, _ = learner.evaluate(own, {}, "test")
    assert {name: last.metrics[name] for name in expected} == expected
    if method == "fedrep":
        assert learner.evaluate(shared, {}, "test")[0]["mse"] != expected["mse"]
