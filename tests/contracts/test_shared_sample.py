"""FedSTL on windows that clients hand over: only where allowed, and what the server makes of them."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from flwr.app import Message
from torch.func import functional_call

from client.policy import Policy
from client.tasks.traffic.learner import TrafficLearner
from common.arrays import Arrays, group, sha256
from common.config.run import RunConfig
from common.errors import ConfigError, QuorumError, RefusedError, WireError
from common.methods.fedstl import WINDOWS as SAMPLE
from common.models import tensors
from common.options import Scalar
from common.tasks.traffic.shared_windows import PREFIX, Sample
from common.tasks.traffic.task import TASK
from common.wire.codec import decode, encode
from common.wire.messages import CLUSTER, AssignReply, AssignRequest, EnrolRequest, TrainReply, TrainRequest
from server.aggregation.clusters import pool_ranges, spread_copies
from server.artifacts import RunDirectory
from server.enrolment import Enrolment
from server.privacy_statement import statement
from server.run import run
from server.state import RunState
from server.strategies.fedstl_shared_windows import SharedWindowsStrategy
from server.strategies.spec import RoundParts
from tests.support.build import task_model
from tests.support.sensors import (
    HISTORY,
    HORIZON,
    MEASURES,
    Listening,
    heard,
    road_config,
    rounds_of,
    sensor,
    session,
    world,
)

OPEN = Policy(allow_shared_sample=True, share_metrics="always")
SHARED: dict[str, Scalar] = {"cluster_data": "shared_sample", "rounds": 1, "model": "paper", "spread": 0.5}
SHARED |= {"tasks__traffic__property": "paper", "sample_windows": 6}


def federation(config: RunConfig, folder: Path, policy: Policy = OPEN, count: int = 3) -> Listening:
    grid = Listening({k + 1: session(f"client-{k}", (sensor(k),), policy=policy) for k in range(count)})
    run(grid, config, folder)
    return grid


def loss(config: RunConfig, model: Arrays, windows: list[tuple[Sample, Arrays]]) -> tuple[float, float, Arrays]:
    """(MSE, L_p, gradient of MSE + λ·L_p) of a model on windows, in one breath."""
    params = {name: p.requires_grad_() for name, p in tensors(model).items()}
    histories, targets, lows, highs = (
        torch.from_numpy(np.concatenate(parts).astype(np.float32))
        for parts in zip(
            *((s.history, s.target, t["low"][s.clock], t["high"][s.clock]) for s, t in windows), strict=True
        )
    )
    forecast = functional_call(task_model(config, MEASURES), params, (histories,))
    outside = (lows - forecast).clamp(min=0) + (forecast - highs).clamp(min=0)
    error, distance = (forecast - targets).square().mean(), outside.mean()
    gradients = torch.autograd.grad(error + config.options_of(TASK).property_weight * distance, list(params.values()))
    return (
        float(error.detach()),
        float(distance.detach()),
        {n: g.numpy() for n, g in zip(params, gradients, strict=True)},
    )


def handed(grid: Listening, config: RunConfig) -> dict[str, tuple[Sample, Arrays]]:
    return {
        name: (Sample.of(reply.property, config.options_of(TASK)), reply.property)
        for name, reply in heard(grid, AssignReply)
    }


def test_clients_hand_over_windows_of_their_training_part_and_no_model_goes_down(tmp_path: Path) -> None:
    config = road_config("fedstl", clusters=2, **SHARED)
    grid = federation(config, tmp_path)
    assert all(request.criterion == "sample" and not request.models for _, request in heard(grid, AssignRequest))
    assert not any(request.phase == CLUSTER for _, request in heard(grid, TrainRequest))
    for name, (sample, _) in handed(grid, config).items():
        assert (sample.history.shape, sample.target.shape) == ((6, HISTORY, 1), (6, HORIZON, 1))
        learner = grid._sessions[int(name[-1]) + 1].runs.find(heard(grid, TrainRequest)[0][1].enrolment).learner
        assert isinstance(learner, TrafficLearner)
        [one] = learner.sensors
        first = one.train[[0, len(one.train) - 1]]
        np.testing.assert_allclose(sample.target[[0, -1]], one.targets(first, HORIZON)[0], rtol=1e-5)
        np.testing.assert_allclose(sample.history[-1, -1], one.values[first[1] - 1], rtol=1e-5)


def test_clusters_are_those_whose_forecasts_of_the_windows_violate_least(tmp_path: Path) -> None:
    config = road_config("fedstl", clusters=3, **SHARED)
    grid = federation(config, tmp_path)
    models = spread_copies(world(config), 3, 0.5, config.seed)
    [line] = rounds_of(tmp_path)
    for name, window in handed(grid, config).items():
        distances = [loss(config, group(str(j), models), [window])[1] for j in range(3)]
        assert len(set(distances)) == 3
        assert line.clusters[name] == int(np.argmin(distances))


def test_the_server_takes_the_cluster_s_steps_on_the_pooled_windows(tmp_path: Path) -> None:
    config = road_config("fedstl", clusters=1, cluster_steps=1, lr=0.1, clip_norm=0.0, **SHARED)
    grid = federation(config, tmp_path)
    model, replies = world(config), [reply for _, reply in heard(grid, TrainReply)]
    total = sum(reply.examples for reply in replies)
    for name in replies[0].update:
        model[name] = model[name] - sum(r.examples / total * r.update[name] for r in replies)
    windows = handed(grid, config)
    phi = pool_ranges([t["low"] for _, t in windows.values()], [t["high"] for _, t in windows.values()])
    _, _, gradient = loss(config, model, [(sample, phi) for sample, _ in windows.values()])
    end = group("0", RunDirectory(tmp_path, "toy").load_model()[0])
    for name, values in model.items():
        np.testing.assert_allclose(end[name], values - 0.1 * gradient[name], atol=1e-6)
    assert "head.weight" not in replies[0].update


def test_one_run_is_like_another(tmp_path: Path) -> None:
    ends = []
    for name in ("a", "b"):
        federation(
            road_config("fedstl", clusters=2, optimizer="adam", lr=0.01, **{**SHARED, "rounds": 2}), tmp_path / name
        )
        ends.append(sha256(RunDirectory(tmp_path / name, "toy").load_model()[0]))
    assert ends[0] == ends[1]


def test_a_client_hands_nothing_over_unless_its_owner_allows_it(tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match="sends data in plaintext, which this client's policy does not allow"):
        federation(road_config("fedstl", clusters=2, **SHARED), tmp_path, Policy())


def test_a_server_cannot_ask_for_windows_in_a_run_that_takes_none(tmp_path: Path) -> None:
    grid = federation(road_config("fedstl", rounds=1, clusters=2), tmp_path, Policy(share_metrics="always"))
    name = heard(grid, TrainRequest)[0][1].enrolment
    with pytest.raises(RefusedError, match="does not announce that clients send training windows"):
        grid._sessions[1].assign(AssignRequest(2, name, {}, "sample"))


def test_it_is_told_as_not_covered_and_cannot_go_with_noise() -> None:
    assert statement(road_config("fedstl", **SHARED), {}, 0).uncovered[0] == SAMPLE
    assert SAMPLE not in statement(road_config("fedstl"), {}, 0).uncovered
    with pytest.raises(ConfigError, match="which noise does not cover; leave noise out"):
        road_config("fedstl", privacy__unit="client", **SHARED)
    with pytest.raises(ConfigError, match="judges ranges"):
        road_config("fedstl", **{**SHARED, "tasks__traffic__property": "difference"})


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"clock": None}, "no sample"),
        ({"clock": np.full((2, HORIZON), 168)}, "no time of the week"),
        ({"clock": np.zeros((2, HORIZON + 1), int)}, "does not fit"),
        ({"clock": np.zeros(3, int)}, "does not fit"),
        ({"target": np.full((2, HORIZON, 1), np.nan)}, "not finite"),
        ({"history": np.zeros((2, 4, 1))}, "does not fit"),
        ({"clock": np.zeros((2, HORIZON))}, "does not fit"),
        ({"clock": np.zeros((2, HORIZON), bool)}, "does not fit"),
        ({"base": np.zeros(())}, "does not fit"),
    ],
)
def test_a_sample_that_does_not_fit_is_refused(changed: dict[str, np.ndarray | None], told: str) -> None:
    parts = {
        "history": np.zeros((2, HISTORY, 1)),
        "base": np.zeros((2, HORIZON, 1)),
        "target": np.zeros((2, HORIZON, 1)),
    }
    sent = {
        f"{PREFIX}{n}": a
        for n, a in {**parts, "clock": np.zeros((2, HORIZON), int), **changed}.items()
        if a is not None
    }
    with pytest.raises(WireError, match=told):
        Sample.of({"low": np.zeros((168, 1)), **sent}, road_config("fedstl").task_options)


def two_variables(reply: AssignReply) -> Arrays:
    """Sample and property of twice as many variables."""
    return {
        n: np.concatenate([a, a], axis=-1) if a.ndim > 1 and "clock" not in n else a for n, a in reply.property.items()
    }


def other_property(reply: AssignReply) -> Arrays:
    return {n: np.concatenate([a, a], axis=-1) if n in ("low", "high") else a for n, a in reply.property.items()}


def real_clock(reply: AssignReply) -> Arrays:
    return {n: a.astype(np.float64) if n == f"{PREFIX}clock" else a for n, a in reply.property.items()}


def flat_property(reply: AssignReply) -> Arrays:
    return {n: np.zeros((), np.float32) if n in ("low", "high") else a for n, a in reply.property.items()}


def test_tables_of_a_longer_week_are_left_out_of_the_cluster_s_steps(tmp_path: Path) -> None:
    """Of clusters that have one property, every window must find its hour in it."""
    config = road_config("fedstl", clusters=1, **SHARED)
    grid = federation(config, tmp_path)
    honest = list(handed(grid, config).values())
    sample, told = honest[0]
    longer = {n: np.concatenate([a, a]) for n, a in told.items() if n in ("low", "high")}
    odd = replace(sample, clock=sample.clock + len(told["low"])), longer
    strategy = SharedWindowsStrategy(
        config.method_options,
        RoundParts(
            config,
            RunState(0, world(config)),
            Enrolment(EnrolRequest("toy", "{}", "{}"), 0.0, lambda messages, seconds: []),
        ),
    )
    model = world(config)
    moved = [strategy._trained(model, [*honest, *more]) for more in ([], [odd])]
    assert sha256(moved[0]) == sha256(moved[1])


@pytest.mark.parametrize("change", [two_variables, other_property, real_clock, flat_property])
def test_a_sample_of_another_world_is_left_out_and_the_run_goes_on(
    change: Callable[[AssignReply], Arrays], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd(Listening):
        """Its second client hands over something else."""

        def _keep(self, replies: Iterable[Message]) -> None:
            super()._keep(self._changed(reply) for reply in replies)

        def _changed(self, message: Message) -> Message:
            if message.metadata.src_node_id == 2 and "AssignReply" in str(message.content):
                reply = decode(AssignReply, message.content)
                message.content = encode(replace(reply, property=change(reply)))
            return message

    config = road_config("fedstl", clusters=2, **{**SHARED, "rounds": 2})
    grid = Odd({k + 1: session(f"client-{k}", (sensor(k),), policy=OPEN) for k in range(3)})
    assert run(grid, config, tmp_path).status == "completed"
    left_out = sum("client-1: not assigned to a cluster anew" in line for line in caplog.messages)
    assert left_out == 4, "it is asked for its training and its evaluation"
    assert all({"client-0", "client-2"} <= line.clusters.keys() for line in rounds_of(tmp_path))
