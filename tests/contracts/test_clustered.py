"""IFCA and FedSTL in whole runs: equivalences, assignment of clients, and data of cluster steps."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from client.training.evaluation import TIE_WEIGHT
from client.training.foresight import training_loss
from common.arrays import Arrays, group, sha256
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.fedstl import FedSTL
from common.options import Scalar
from common.wire.messages import CLUSTER, AssignReply, AssignRequest, TrainReply, TrainRequest
from deploy.simulation.grid import InProcessGrid, simulate
from server.aggregation.clusters import assign_clusters, pool_ranges, spread_copies
from server.record.folder import RunDirectory
from server.run import run
from tests.support.sensors import APART, Listening, heard, road_config, road_grid, rounds_of, stores, world
from tests.support.toys import CATALOGUE, configured, toy_dataset

ONE: dict[str, Scalar] = {"clusters": 1, "spread": 0.0}


def trained(config: RunConfig, folder: Path, count: int = 3) -> tuple[Arrays, dict[str, float]]:
    result = run(road_grid(stores(count), InProcessGrid), config, folder)
    return RunDirectory(folder, "toy").load_model()[0], result.metrics


def test_ifca_with_one_cluster_is_fedavg_bit_for_bit(tmp_path: Path) -> None:
    both: dict[str, Scalar] = {"lr": 0.1, "rounds": 3, "weighting": "examples"}
    ifca, clustered = trained(road_config("ifca", **both, **ONE), tmp_path / "ifca")
    fedavg, averaged = trained(road_config("fedavg", **both), tmp_path / "fedavg")
    assert sha256(group("0", ifca)) == sha256(fedavg)
    assert {name: clustered[f"cluster_{name}"] for name in ("mse", "loss", "rho_trace")} == {
        name: averaged[name] for name in ("mse", "loss", "rho_trace")
    }


def test_ifca_with_one_cluster_is_fedavg_on_another_task(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.json"
    path.write_text(CATALOGUE.to_json(), "utf-8")
    both: dict[str, Scalar] = {"lr": 0.2, "rounds": 3, "federation__min_clients": 1, "catalogue": str(path)}
    models = []
    for method, options in (("ifca", ONE), ("fedavg", {})):
        simulate(configured(method, **both, **options), toy_dataset(3), tmp_path / method)
        models.append(RunDirectory(tmp_path / method, "toy").load_model()[0])
    assert sha256(group("0", models[0])) == sha256(models[1])


def test_fedstl_with_one_cluster_and_kappa_0_is_fedavg_with_a_private_head(tmp_path: Path) -> None:
    """Both have λ = 0, equal weights and equal step sizes."""
    both: dict[str, Scalar] = {"lr": 0.1, "rounds": 3, "weighting": "examples", "tasks__traffic__property_weight": 0.0}
    fedstl, clustered = trained(road_config("fedstl", **both, **ONE, cluster_steps=0), tmp_path / "fedstl")
    fedrep, averaged = trained(road_config("fedrep", **both, clip_norm=1.0), tmp_path / "fedrep")
    assert sha256(group("0", fedstl)) == sha256(fedrep)
    assert clustered["cluster_mse"] == averaged["mse"]


def test_fedstl_with_one_cluster_and_all_layers_shared_is_fedavg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """§3.13."""
    whole = FedSTL.capabilities
    monkeypatch.setattr(FedSTL, "capabilities", lambda self: replace(whole(self), private_layers="none"))
    both: dict[str, Scalar] = {"lr": 0.1, "rounds": 3, "weighting": "examples", "tasks__traffic__property_weight": 0.0}
    fedstl, _ = trained(road_config("fedstl", **both, **ONE, cluster_steps=0), tmp_path / "fedstl")
    fedavg, _ = trained(road_config("fedavg", **both, clip_norm=1.0), tmp_path / "fedavg")
    assert sha256(group("0", fedstl)) == sha256(fedavg)


@pytest.mark.parametrize("method", ["ifca", "fedstl"])
@pytest.mark.parametrize("rule", ["argmin", "capacity"])
def test_clients_join_the_cluster_of_their_scores(method: str, rule: str, tmp_path: Path) -> None:
    grid = road_grid(stores(5), Listening)
    config = road_config(method, rounds=1, clusters=3, assign=rule, **APART)
    run(grid, config, tmp_path)
    said = {name: [reply.losses[str(j)] for j in range(3)] for name, reply in heard(grid, AssignReply)}
    [line] = rounds_of(tmp_path)
    assert len({value for row in said.values() for value in row}) == 15, "no ties"
    assert line.clusters == assign_clusters(said, rule)  # type: ignore[arg-type]

    models = spread_copies(world(config), 3, 0.5, config.seed)
    _, first = heard(grid, AssignRequest)[0]
    assert sha256(first.models) == sha256(models)
    learner = grid._sessions[2].runs.find(first.enrolment).learner
    if method == "fedstl":
        each = [group(str(j), models) for j in range(3)]
        assert said["client-1"] == [learner.violation(m) + TIE_WEIGHT * training_loss(learner, m, {}) for m in each]
    local = [request for request in heard(grid, TrainRequest) if request[1].phase != CLUSTER]
    assert all(sha256(request.model) == sha256(group(str(line.clusters[name]), models)) for name, request in local)


def test_the_first_assignment_of_the_default_model_is_a_tie_over_all_clusters(tmp_path: Path) -> None:
    """All its models start at the weekly profile, for any distance between their layers."""
    run(road_grid(stores(8), InProcessGrid), road_config("fedstl", rounds=1, clusters=3), tmp_path)
    assert len(set(rounds_of(tmp_path)[0].clusters.values())) > 1


def test_fedstl_by_loss_has_the_clusters_of_ifca_and_receives_no_property(tmp_path: Path) -> None:
    grid = road_grid(stores(4), Listening)
    both: dict[str, Scalar] = {"rounds": 1, "clusters": 3, **APART}
    run(grid, road_config("fedstl", criterion="loss", cluster_steps=0, **both), tmp_path / "fedstl")
    run(road_grid(stores(4), InProcessGrid), road_config("ifca", **both), tmp_path / "ifca")
    assert rounds_of(tmp_path / "fedstl")[0].clusters == rounds_of(tmp_path / "ifca")[0].clusters
    assert [reply.property for _, reply in heard(grid, AssignReply)] == [{}] * 4
    assert FedSTL(criterion="loss", cluster_steps=0).uncovered() == ()
    with pytest.raises(ConfigError, match="cluster-steps=0"):
        road_config("fedstl", criterion="loss", cluster_steps=1)


@pytest.mark.parametrize("every", [1, 2, 5])
def test_clients_are_assigned_again_after_recluster_every_rounds(every: int, tmp_path: Path) -> None:
    grid = road_grid(stores(2), Listening)
    run(grid, road_config("ifca", rounds=4, recluster_every=every, **APART), tmp_path)
    assert len(heard(grid, AssignRequest)) == 2 * -(-4 // every)


@pytest.mark.parametrize(("clients", "clusters"), [(2, 7), (1, 3), (1, 1)])
@pytest.mark.parametrize("method", ["ifca", "fedstl"])
def test_empty_clusters_keep_their_model(method: str, clients: int, clusters: int, tmp_path: Path) -> None:
    config = road_config(method, clusters=clusters, **APART)
    end, metrics = trained(config, tmp_path, clients)
    start = spread_copies(world(config), clusters, 0.5, config.seed)
    joined = {j for line in rounds_of(tmp_path) for j in line.clusters.values()}
    changed = {j for j in range(clusters) if sha256(group(str(j), start)) != sha256(group(str(j), end))}
    assert changed == joined
    assert metrics["mse"] > 0


def test_cluster_steps_train_under_the_weakest_property_of_the_cluster(tmp_path: Path) -> None:
    """They start at the mean of the first exchange; the model of the round is the second mean."""
    grid = road_grid(stores(3), Listening)
    config = road_config("fedstl", rounds=1, **ONE, model="paper", tasks__traffic__property="paper", cluster_steps=5)
    run(grid, config, tmp_path)
    properties = [reply.property for _, reply in heard(grid, AssignReply)]
    second = [request for _, request in heard(grid, TrainRequest) if request.phase == CLUSTER]
    phi = pool_ranges([p["low"] for p in properties], [p["high"] for p in properties])
    assert len(second) == 3
    assert all(sha256(request.shared) == sha256(phi) for request in second)

    replies, model = [reply for _, reply in heard(grid, TrainReply)], world(config)
    assert [reply.steps for reply in replies] == [2] * 3 + [5] * 3
    middle = averaged(model, replies[:3])
    np.testing.assert_allclose(second[0].model["lower.bias_ih"], middle["lower.bias_ih"], atol=1e-7)
    end = group("0", RunDirectory(tmp_path, "toy").load_model()[0])
    np.testing.assert_allclose(end["lower.bias_ih"], averaged(middle, replies[3:])["lower.bias_ih"], atol=1e-7)


def averaged(model: Arrays, replies: list[TrainReply]) -> Arrays:
    """Return θ − Σ n_k Δ_k / Σ n_k of the layers that were sent."""
    total = sum(reply.examples for reply in replies)
    names = model.keys() & replies[0].update.keys()
    return {n: model[n] - sum(r.examples / total * r.update[n] for r in replies) for n in names}
