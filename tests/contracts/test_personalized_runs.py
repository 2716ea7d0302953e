"""Whole runs of methods with private layers: replies, the server's model, evaluation."""

from pathlib import Path

import numpy as np
import pytest

from client.state import MemoryStore
from common.options import Scalar
from common.wire.messages import AssignReply, EnrolRequest, EvaluateReply, TrainReply
from server.clients.enrolment import Enrolment
from server.record.folder import RunDirectory
from server.round.state import RunState
from server.run import run
from tests.support.build import head_of, round_of
from tests.support.sensors import MEASURES, Listening, heard, road_config, road_grid, sensor, session, world


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
