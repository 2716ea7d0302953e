"""IFCA and FedSTL through whole runs: what they turn into, who joins which cluster, and what a crash may not change."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message

from client.session import TIE
from client.state import DiskStore, MemoryStore, Store
from client.tasks.learner import training_loss
from common.arrays import Arrays, group, sha256
from common.config import RunConfig, Scalar
from common.models.heads import HEADS
from common.wire.codec import decode, encode
from common.wire.messages import CLUSTER, AssignReply, AssignRequest, TrainReply, TrainRequest
from deploy.simulation import InProcessGrid, simulate
from server.aggregation.clusters import apart, assigned, weakest
from server.artifacts import RunDirectory
from server.events import Round
from server.journal import Journal
from server.run import run
from tests.sensors import Listening, heard, road_config, road_grid, world
from tests.toys import CATALOGUE, configured, toy_dataset

ONE: dict[str, Scalar] = {"clusters": 1, "spread": 0.0}
APART: dict[str, Scalar] = {"model": "paper", "tasks__traffic__property": "paper", "spread": 0.5}
"""Models that forecast differently from the start, and a property that they violate."""


def stores(count: int) -> list[Store]:
    return [MemoryStore() for _ in range(count)]


def trained(config: RunConfig, folder: Path, count: int = 3) -> tuple[Arrays, dict[str, float]]:
    result = run(road_grid(stores(count), InProcessGrid), config, folder)
    return RunDirectory(folder, "toy").load_model()[0], result.metrics


def rounds_of(folder: Path) -> list[Round]:
    return [event for event in RunDirectory(folder, "toy").events() if isinstance(event, Round)]


def test_ifca_of_one_cluster_is_fedavg_bit_for_bit(tmp_path: Path) -> None:
    both: dict[str, Scalar] = {"lr": 0.1, "rounds": 3, "weighting": "examples"}
    ifca, clustered = trained(road_config("ifca", **both, **ONE), tmp_path / "ifca")
    fedavg, averaged = trained(road_config("fedavg", **both), tmp_path / "fedavg")
    assert sha256(group("0", ifca)) == sha256(fedavg)
    assert {name: clustered[f"cluster_{name}"] for name in ("mse", "loss", "rho_trace")} == {
        name: averaged[name] for name in ("mse", "loss", "rho_trace")
    }


def test_ifca_of_one_cluster_is_fedavg_on_another_task_too(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.json"
    path.write_text(CATALOGUE.to_json(), "utf-8")
    both: dict[str, Scalar] = {"lr": 0.2, "rounds": 3, "federation__min_clients": 1, "catalogue": str(path)}
    models = []
    for method, options in (("ifca", ONE), ("fedavg", {})):
        simulate(configured(method, **both, **options), toy_dataset(3), tmp_path / method)
        models.append(RunDirectory(tmp_path / method, "toy").load_model()[0])
    assert sha256(group("0", models[0])) == sha256(models[1])


def test_fedstl_of_one_cluster_without_its_epochs_is_fedavg_with_a_private_head(tmp_path: Path) -> None:
    """λ = 0, and the weights and step sizes alike."""
    both: dict[str, Scalar] = {"lr": 0.1, "rounds": 3, "weighting": "examples", "tasks__traffic__property_weight": 0.0}
    fedstl, clustered = trained(road_config("fedstl", **both, **ONE, cluster_steps=0), tmp_path / "fedstl")
    fedrep, averaged = trained(road_config("fedrep", **both, clip_norm=1.0), tmp_path / "fedrep")
    assert sha256(group("0", fedstl)) == sha256(fedrep)
    assert clustered["cluster_mse"] == averaged["mse"]


def test_and_with_all_layers_shared_it_is_fedavg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """§3.13."""
    monkeypatch.setitem(HEADS, "traffic", ())
    both: dict[str, Scalar] = {"lr": 0.1, "rounds": 3, "weighting": "examples", "tasks__traffic__property_weight": 0.0}
    fedstl, _ = trained(road_config("fedstl", **both, **ONE, cluster_steps=0), tmp_path / "fedstl")
    fedavg, _ = trained(road_config("fedavg", **both, clip_norm=1.0), tmp_path / "fedavg")
    assert sha256(group("0", fedstl)) == sha256(fedavg)


@pytest.mark.parametrize("method", ["ifca", "fedstl"])
@pytest.mark.parametrize("rule", ["argmin", "capacity"])
def test_clients_join_by_what_they_say_of_the_models(method: str, rule: str, tmp_path: Path) -> None:
    grid = road_grid(stores(5), Listening)
    config = road_config(method, rounds=1, clusters=3, assign=rule, **APART)
    run(grid, config, tmp_path)
    said = {name: [reply.losses[str(j)] for j in range(3)] for name, reply in heard(grid, AssignReply)}
    [line] = rounds_of(tmp_path)
    assert len({value for row in said.values() for value in row}) == 15, "no ties"
    assert line.clusters == assigned(said, rule)  # type: ignore[arg-type]

    models = apart(world(config), 3, 0.5, config.seed)
    _, first = heard(grid, AssignRequest)[0]
    assert sha256(first.models) == sha256(models)
    learner = grid._sessions[2]._find(first.enrolment).learner
    if method == "fedstl":
        each = [group(str(j), models) for j in range(3)]
        assert said["client-1"] == [learner.violation(m) + TIE * training_loss(learner, m) for m in each]
    local = [asked for asked in heard(grid, TrainRequest) if asked[1].phase != CLUSTER]
    assert all(sha256(asked.model) == sha256(group(str(line.clusters[name]), models)) for name, asked in local)


def test_under_the_default_model_the_first_assignment_is_a_tie_that_leaves_no_cluster_all(tmp_path: Path) -> None:
    """Its models all start at the profile, however far apart their layers are."""
    run(road_grid(stores(8), InProcessGrid), road_config("fedstl", rounds=1, clusters=3), tmp_path)
    assert len(set(rounds_of(tmp_path)[0].clusters.values())) > 1


@pytest.mark.parametrize("every", [1, 2, 5])
def test_clients_are_asked_anew_every_so_many_rounds(every: int, tmp_path: Path) -> None:
    grid = road_grid(stores(2), Listening)
    run(grid, road_config("ifca", rounds=4, recluster_every=every, **APART), tmp_path)
    assert len(heard(grid, AssignRequest)) == 2 * -(-4 // every)


@pytest.mark.parametrize(("clients", "clusters"), [(2, 7), (1, 3), (1, 1)])
@pytest.mark.parametrize("method", ["ifca", "fedstl"])
def test_clusters_without_a_member_keep_their_model(method: str, clients: int, clusters: int, tmp_path: Path) -> None:
    config = road_config(method, clusters=clusters, **APART)
    end, metrics = trained(config, tmp_path, clients)
    start = apart(world(config), clusters, 0.5, config.seed)
    members = {j for line in rounds_of(tmp_path) for j in line.clusters.values()}
    moved = {j for j in range(clusters) if sha256(group(str(j), start)) != sha256(group(str(j), end))}
    assert moved == members
    assert metrics["mse"] > 0


def test_the_cluster_s_epochs_train_under_the_weakest_of_the_members_properties(tmp_path: Path) -> None:
    """And from the members' mean of the first exchange; the model of the round is their second mean."""
    grid = road_grid(stores(3), Listening)
    config = road_config("fedstl", rounds=1, **ONE, model="paper", tasks__traffic__property="paper", cluster_steps=5)
    run(grid, config, tmp_path)
    properties = [reply.property for _, reply in heard(grid, AssignReply)]
    second = [request for _, request in heard(grid, TrainRequest) if request.phase == CLUSTER]
    phi = weakest([p["low"] for p in properties], [p["high"] for p in properties])
    assert len(second) == 3
    assert all(sha256(request.shared) == sha256(phi) for request in second)

    replies, model = [reply for _, reply in heard(grid, TrainReply)], world(config)
    assert [reply.steps for reply in replies] == [2] * 3 + [5] * 3
    middle = averaged(model, replies[:3])
    np.testing.assert_allclose(second[0].model["lower.bias_ih"], middle["lower.bias_ih"], atol=1e-7)
    end = group("0", RunDirectory(tmp_path, "toy").load_model()[0])
    np.testing.assert_allclose(end["lower.bias_ih"], averaged(middle, replies[3:])["lower.bias_ih"], atol=1e-7)


def averaged(model: Arrays, replies: list[TrainReply]) -> Arrays:
    """θ − Σ n_k Δ_k / Σ n_k of the layers that were sent whole."""
    total = sum(reply.examples for reply in replies)
    names = model.keys() & replies[0].update.keys()
    return {n: model[n] - sum(r.examples / total * r.update[n] for r in replies) for n in names}


class Lying(Listening):
    """Client 1 answers the assignment with something else."""

    lie: AssignReply

    def _keep(self, replies: Iterable[Message]) -> None:
        super()._keep([self._spoilt(reply) for reply in replies])

    def _spoilt(self, reply: Message) -> Message:
        about = reply.content["fedloom"]["wire.payload"]  # type: ignore[index]
        if reply.metadata.src_node_id == 2 and about == "AssignReply":
            honest = decode(AssignReply, reply.content)
            self.lie = self.lie or honest
            reply.content = encode(self.lie)
        return reply


FLAT = {"low": np.zeros((168, 1), np.float32), "high": np.ones((168, 1), np.float32)}
LIES = {
    "NaN": AssignReply(1, {"0": 0.1, "1": float("nan"), "2": 0.3}, FLAT),
    "infinity": AssignReply(1, {"0": 0.1, "1": float("inf"), "2": 0.3}, FLAT),
    "missing": AssignReply(1, {"0": 0.1, "1": 0.2}, FLAT),
    "too many": AssignReply(1, {"0": 0.1, "1": 0.2, "2": 0.3, "3": 0.0}, FLAT),
    "none": AssignReply(1, {}, {}),
    "upside down": AssignReply(1, {"0": 0.1, "1": 0.2, "2": 0.3}, {"low": FLAT["high"], "high": FLAT["low"]}),
    "NaN bounds": AssignReply(1, {"0": 0.1, "1": 0.2, "2": 0.3}, {**FLAT, "low": FLAT["low"] * np.float32(np.nan)}),
    "half": AssignReply(1, {"0": 0.1, "1": 0.2, "2": 0.3}, {"low": FLAT["low"]}),
    "of two shapes": AssignReply(1, {"0": 0.1, "1": 0.2, "2": 0.3}, {**FLAT, "low": FLAT["low"][:3]}),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_client_that_answers_nonsense_is_not_assigned_and_named(
    lie: AssignReply, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grid = road_grid(stores(3), Lying)
    grid.lie = lie
    with caplog.at_level(logging.WARNING, "fedloom.server"):
        run(grid, road_config("fedstl", rounds=1, clusters=3), tmp_path)
    assert rounds_of(tmp_path)[0].clusters.keys() == {"client-0", "client-2"}
    assert "client-1: not assigned to a cluster anew: " in caplog.text
    assert "client-0" not in caplog.text
    assert rounds_of(tmp_path)[0].answered == 3, "it trains the first model"


class PullThePlugError(Exception):
    """The machine went down."""


def test_a_run_torn_in_its_first_round_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first checkpoint holds the K models already."""
    config = road_config("ifca", clusters=2, **APART)
    through = run(road_grid(stores(2), InProcessGrid), config, tmp_path / "through")
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "trained", pull_the_plug)
        with pytest.raises(PullThePlugError):
            run(road_grid(stores(2), InProcessGrid), config, tmp_path / "torn")
    again = config.model_copy(update={"resume": True})
    resumed = run(road_grid(stores(2), InProcessGrid), again, tmp_path / "torn")
    assert resumed.model_sha256 == through.model_sha256


def pull_the_plug(*arguments: Any) -> None:
    raise PullThePlugError


def torn(grid: InProcessGrid, config: RunConfig, runs: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """A run whose server goes down after a round's evaluation."""
    evaluated = Journal.evaluated

    def crash(journal: Journal, number: int, evaluation: Any) -> None:
        evaluated(journal, number, evaluation)
        if number == after:
            raise PullThePlugError

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "evaluated", crash)
        with pytest.raises(PullThePlugError):
            run(grid, config, runs)


@pytest.mark.parametrize(
    ("method", "options"),
    [("ifca", {}), ("ifca", {"federation__cohort": 0.7}), ("fedstl", {}), ("fedstl", {"recluster_every": 2})],
)
def test_a_run_resumed_after_a_crash_ends_as_one_that_never_stopped(
    method: str, options: dict[str, Scalar], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = road_config(method, rounds=3, clusters=2, **APART, **options)
    through = run(road_grid(stores(3), InProcessGrid), config, tmp_path / "through")
    disks: list[Store] = [DiskStore(tmp_path / f"s{k}") for k in range(3)]
    torn(road_grid(disks, InProcessGrid), config, tmp_path / "torn", monkeypatch, after=2)
    # IFCA's clients keep nothing that matters to the others: a simulation may resume with new ones
    after = disks if method == "fedstl" else stores(3)
    again = config.model_copy(update={"resume": True})
    resumed = run(road_grid(after, InProcessGrid), again, tmp_path / "torn")
    assert (resumed.rounds_done, resumed.model_sha256) == (3, through.model_sha256)
    assert rounds_of(tmp_path / "torn")[-1].clusters == rounds_of(tmp_path / "through")[-1].clusters
