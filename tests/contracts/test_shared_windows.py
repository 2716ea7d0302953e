"""FedSTL on windows that clients send: assignment and cluster steps on the server."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from server.methods.fedstl_shared_windows import SharedWindowsStrategy
from torch.func import functional_call

from client.tasks.traffic.learner import TrafficLearner
from common.arrays import Arrays, group, sha256
from common.config.run import RunConfig
from common.models import tensors
from common.tasks.traffic.shared_windows import Sample
from common.tasks.traffic.task import TASK
from common.wire.messages import CLUSTER, AssignReply, AssignRequest, EnrolRequest, TrainReply, TrainRequest
from server.aggregation.clusters import pool_ranges, spread_copies
from server.clients.enrolment import Enrolment
from server.record.folder import RunDirectory
from server.round.method import RoundParts
from server.round.state import RunState
from tests.support.build import task_model
from tests.support.sensors import (
    HISTORY,
    HORIZON,
    MEASURES,
    Listening,
    heard,
    road_config,
    rounds_of,
    world,
)
from tests.support.shared_windows import SHARED, federation


def loss(config: RunConfig, model: Arrays, windows: list[tuple[Sample, Arrays]]) -> tuple[float, float, Arrays]:
    """Return (MSE, L_p, gradient of MSE + λ·L_p) of a model on windows."""
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


def windows_sent(grid: Listening, config: RunConfig) -> dict[str, tuple[Sample, Arrays]]:
    return {
        name: (Sample.of(reply.property, config.options_of(TASK)), reply.property)
        for name, reply in heard(grid, AssignReply)
    }


def test_clients_send_windows_of_their_training_split_and_receive_no_model(tmp_path: Path) -> None:
    config = road_config("fedstl", clusters=2, **SHARED)
    grid = federation(config, tmp_path)
    assert all(request.criterion == "sample" and not request.models for _, request in heard(grid, AssignRequest))
    assert not any(request.phase == CLUSTER for _, request in heard(grid, TrainRequest))
    for name, (sample, _) in windows_sent(grid, config).items():
        assert (sample.history.shape, sample.target.shape) == ((6, HISTORY, 1), (6, HORIZON, 1))
        learner = grid._sessions[int(name[-1]) + 1].runs.find(heard(grid, TrainRequest)[0][1].enrolment).learner
        assert isinstance(learner, TrafficLearner)
        [one] = learner.sensors
        first = one.train[[0, len(one.train) - 1]]
        np.testing.assert_allclose(sample.target[[0, -1]], one.targets(first, HORIZON)[0], rtol=1e-5)
        np.testing.assert_allclose(sample.history[-1, -1], one.values[first[1] - 1], rtol=1e-5)


def test_clients_join_the_cluster_with_the_least_violation_on_their_windows(tmp_path: Path) -> None:
    config = road_config("fedstl", clusters=3, **SHARED)
    grid = federation(config, tmp_path)
    models = spread_copies(world(config), 3, 0.5, config.seed)
    [line] = rounds_of(tmp_path)
    for name, window in windows_sent(grid, config).items():
        distances = [loss(config, group(str(j), models), [window])[1] for j in range(3)]
        assert len(set(distances)) == 3
        assert line.clusters[name] == int(np.argmin(distances))


def test_the_server_makes_the_cluster_steps_on_the_pooled_windows(tmp_path: Path) -> None:
    config = road_config("fedstl", clusters=1, cluster_steps=1, lr=0.1, clip_norm=0.0, **SHARED)
    grid = federation(config, tmp_path)
    model, replies = world(config), [reply for _, reply in heard(grid, TrainReply)]
    total = sum(reply.examples for reply in replies)
    for name in replies[0].update:
        model[name] = model[name] - sum(r.examples / total * r.update[name] for r in replies)
    windows = windows_sent(grid, config)
    phi = pool_ranges([t["low"] for _, t in windows.values()], [t["high"] for _, t in windows.values()])
    _, _, gradient = loss(config, model, [(sample, phi) for sample, _ in windows.values()])
    end = group("0", RunDirectory(tmp_path, "toy").load_model()[0])
    for name, values in model.items():
        np.testing.assert_allclose(end[name], values - 0.1 * gradient[name], atol=1e-6)
    assert "head.weight" not in replies[0].update


def test_runs_are_deterministic(tmp_path: Path) -> None:
    ends = []
    for name in ("a", "b"):
        federation(
            road_config("fedstl", clusters=2, optimizer="adam", lr=0.01, **{**SHARED, "rounds": 2}), tmp_path / name
        )
        ends.append(sha256(RunDirectory(tmp_path / name, "toy").load_model()[0]))
    assert ends[0] == ends[1]


def test_properties_of_another_shape_are_left_out_of_the_cluster_steps(tmp_path: Path) -> None:
    """A cluster has one property, which must have a row for the hour of every window."""
    config = road_config("fedstl", clusters=1, **SHARED)
    grid = federation(config, tmp_path)
    valid = list(windows_sent(grid, config).values())
    sample, bounds = valid[0]
    longer = {n: np.concatenate([a, a]) for n, a in bounds.items() if n in ("low", "high")}
    longer_windows = replace(sample, clock=sample.clock + len(bounds["low"])), longer
    strategy = SharedWindowsStrategy(
        config.method_options,
        RoundParts(
            config,
            RunState(0, world(config)),
            Enrolment(EnrolRequest("toy", "{}", "{}"), 0.0, lambda messages, seconds: []),
        ),
    )
    model = world(config)
    moved = [strategy._train(model, [*valid, *more]) for more in ([], [longer_windows])]
    assert sha256(moved[0]) == sha256(moved[1])
