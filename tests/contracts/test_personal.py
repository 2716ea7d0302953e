"""Methods that leave clients models of their own: what is trained when, what leaves a client, and what the server keeps."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from client.state import MemoryStore
from client.training.cohort import evaluated, train
from client.training.participant import Participant
from common.arrays import Arrays, sha256
from common.methods.fedavg import FedAvg
from common.methods.fedstl import FedSTL
from common.methods.personalized import Ditto, FedRep, Local
from common.methods.spec import MethodOptions
from common.options import Scalar
from common.wire.messages import CLUSTER, AssignReply, EnrolRequest, EvaluateReply, TrainReply, TrainRequest
from server.artifacts import RunDirectory
from server.enrolment import Enrolment
from server.run import run
from server.state import RunState
from tests.support.build import head_of, learner_of, strategy_of
from tests.support.sensors import MEASURES, Listening, heard, road_config, road_grid, sensor, session, world
from tests.support.toys import Quadratic, flat, quadratic_model, quadratics

ENCODER, HEAD = np.arange(4) < 2, np.arange(4) >= 2
"""Of the quadratic clients' four numbers, the shared ones and those of the head."""

CLIENT: Quadratic = quadratics(1, seed=4)["client-0"]


def member(
    number: int = 1, model: Arrays | None = None, like: Participant | None = None, phase: str = "local"
) -> Participant:
    request = TrainRequest(number, "toy:0", model or quadratic_model(), phase=phase)
    return Participant("ann", "toy", 0, CLIENT, like.store if like else MemoryStore(), request, 3)


def once(algorithm: MethodOptions, one: Participant) -> TrainReply:
    [reply] = train(algorithm, [replace(one, steps=algorithm.steps(one.request.phase))])
    assert isinstance(reply, TrainReply)
    return reply


def kept(one: Participant, group: str) -> Arrays:
    return {n: t.numpy() for n, t in one.store.load("toy").groups[f"{group}.after"].items()}


def descended(start: np.ndarray, masks: list[np.ndarray], rate: float = 0.1) -> np.ndarray:
    """Gradient descent on the quadratic by hand, step t moving the numbers of mask t."""
    for mask in masks:
        start = start - rate * mask * (CLIENT.curvature @ (start - CLIENT.centre))
    return start


def elsewhere(seed: int) -> Arrays:
    """A model of the server's, whose head the client has nothing to do with."""
    rng = np.random.default_rng(seed)
    return {"encoder.w": rng.normal(size=2), "predictor.w": rng.normal(size=2)}


PRIVATE: dict[str, tuple[MethodOptions, list[np.ndarray]]] = {
    "together": (FedRep(lr=0.1, local_steps=3), [ENCODER | HEAD] * 3),
    "head first": (FedRep(lr=0.1, local_steps=3, head_steps=2), [HEAD, HEAD, ENCODER]),
    "fedstl": (FedSTL(lr=0.1, local_steps=3, clip_norm=0.0), [ENCODER | HEAD] * 3),
}


@pytest.mark.parametrize(("algorithm", "masks"), PRIVATE.values(), ids=PRIVATE.keys())
def test_a_private_head_trains_stays_and_goes_on_where_it_was(
    algorithm: MethodOptions, masks: list[np.ndarray]
) -> None:
    first = member()
    reply = once(algorithm, first)
    after = descended(np.zeros(4), masks)
    assert reply.update.keys() == {"encoder.w"}
    np.testing.assert_allclose(reply.update["encoder.w"], -after[ENCODER])
    np.testing.assert_allclose(kept(first, "head")["predictor.w"], after[HEAD])

    model = elsewhere(1)
    second = member(2, model, first)
    reply = once(algorithm, second)
    start = np.concatenate([model["encoder.w"], after[HEAD]])
    further = descended(start, masks)
    np.testing.assert_allclose(reply.update["encoder.w"], (start - further)[ENCODER])
    np.testing.assert_allclose(kept(second, "head")["predictor.w"], further[HEAD])


@pytest.mark.parametrize(
    "algorithm",
    [FedRep(head_steps=1), Ditto(), Local(), FedSTL(), FedRep(optimizer="adam", lr=0.02), Local(optimizer="adam")],
    ids=lambda a: f"{a.name}-{a.optimizer}",
)
def test_a_replayed_round_ends_as_the_first_attempt_did(algorithm: MethodOptions) -> None:
    before = member()
    once(algorithm, before)
    later = member(2, elsewhere(1), before)
    first, memory = once(algorithm, later), later.store.load("toy")
    once(algorithm, replace(later, request=replace(later.request, phase=CLUSTER)))
    again, replayed = once(algorithm, later), later.store.load("toy")
    assert sha256(again.update) == sha256(first.update)
    assert replayed.groups.keys() == memory.groups.keys()
    for group, named in memory.groups.items():
        assert all(torch.equal(t, replayed.groups[group][n]) for n, t in named.items()), group


def test_the_cluster_s_epochs_move_shared_layers_only_and_leave_no_trace() -> None:
    algorithm = FedSTL(lr=0.1, local_steps=3, cluster_steps=4, clip_norm=0.0)
    local = member()
    once(algorithm, local)
    memory, head, model = local.store.load("toy"), kept(local, "head")["predictor.w"], elsewhere(2)
    reply = once(algorithm, member(1, model, local, CLUSTER))
    start = np.concatenate([model["encoder.w"], head])
    assert (reply.steps, reply.update.keys()) == (4, {"encoder.w"})
    np.testing.assert_allclose(reply.update["encoder.w"], (start - descended(start, [ENCODER] * 4))[ENCODER])
    assert local.store.load("toy") is memory


def test_a_model_whose_layers_arrive_in_another_order_is_trained_to_the_same_bits() -> None:
    """Decoding gives them in any; the norm that gradients are clipped to is a sum over the layers."""
    config, rng = road_config("fedstl", model="paper", lr=1.0, clip_norm=0.5), np.random.default_rng(0)
    learner, start = learner_of(config, MEASURES, (sensor(1),)), world(config)
    ends = set()
    for _ in range(12):
        request = TrainRequest(1, "toy:0", {n: start[n] for n in rng.permutation(list(start)).tolist()})
        one = Participant("ann", "toy", 0, learner, MemoryStore(), request, 2)
        ends.add(sha256(once(config.method_options, one).update))
    assert len(ends) == 1


@pytest.mark.parametrize("pull", [0.0, 0.5, 2.0])
def test_ditto_s_own_model_descends_beside_the_global_one(pull: float) -> None:
    """V ← v − η(∇L(v) + λ(v − θ)) from its last value, θ being the model of the round; what is sent is FedAvg's."""
    own, before = np.zeros(4), member()
    for number in (1, 2, 3):
        model = elsewhere(number)
        one = member(number, model, before)
        reply = once(Ditto(lr=0.1, local_steps=3, pull=pull), one)
        own = flat(model) if number == 1 else own
        for _ in range(3):
            own = own - 0.1 * (CLIENT.curvature @ (own - CLIENT.centre) + pull * (own - flat(model)))
        np.testing.assert_allclose(flat(kept(one, "own")), own)
        assert sha256(reply.update) == sha256(once(FedAvg(lr=0.1, local_steps=3), member(number, model)).update)


def test_an_own_model_that_diverges_is_an_error_and_is_not_kept() -> None:
    one = replace(member(), steps=40)
    [error] = train(Ditto(lr=0.1, pull=1e30), [one])
    assert "training diverged" in str(error)
    assert one.store.load("toy").groups == {}


def test_what_is_measured_is_ones_own_model_and_beside_it_the_shared_one() -> None:
    for algorithm, own, prefixes in (
        (FedAvg(), False, [""]),
        (FedRep(), False, [""]),
        (Local(), False, [""]),
        (Ditto(), True, ["", "global_"]),
        (FedSTL(), True, ["", "cluster_"]),
    ):
        one, model = member(), elsewhere(3)
        assert all(sha256(m) == sha256(model) for m in evaluated(algorithm, model, one.store.load("toy")).values())
        once(algorithm, one)
        memory = one.store.load("toy")
        found = evaluated(algorithm, model, memory)
        head = kept(one, "head") if "head.after" in memory.groups else {}
        assert list(found) == prefixes
        assert sha256(list(found.values())[-1]) == sha256({**model, **head})
        assert sha256(found[""]) == sha256(kept(one, "own") if own else {**model, **head})


def test_training_alone_goes_on_where_it_was_and_uploads_nothing() -> None:
    one, algorithm = member(), Local(lr=0.1, local_steps=3)
    assert once(algorithm, one).update == {}
    assert once(algorithm, member(2, elsewhere(1), one)).update == {}
    np.testing.assert_allclose(flat(kept(one, "head")), descended(np.zeros(4), [ENCODER | HEAD] * 6))


@pytest.mark.parametrize(("network", "model"), [("gru", "default"), ("lstm", "paper"), ("transformer", "paper")])
@pytest.mark.parametrize("method", ["fedrep", "fedstl", "local"])
def test_heads_are_in_no_reply_and_the_server_s_never_change(
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
    fresh = strategy_of(config, RunState(0, start), enrolment).state.model
    changed = {name for name in end if not np.array_equal(end[name], fresh[name])}
    assert fresh.keys() == end.keys()
    assert head_of("traffic", {name.split("/")[-1] for name in changed}) == frozenset()
    assert bool(changed) == (method != "local")


@pytest.mark.parametrize("method", ["fedrep", "fedstl"])
def test_a_client_is_measured_with_its_own_head(method: str, tmp_path: Path) -> None:
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
