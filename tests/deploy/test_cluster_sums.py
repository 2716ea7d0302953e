"""IFCA under secure sums: one sum with a part for each cluster, which the clients themselves choose."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message
from safetensors.numpy import load

from client.session import MODEL
from client.training.evaluation import CLUSTER
from common.arrays import Arrays, group, sha256
from common.errors import ConfigError
from common.wire.codec import decode
from common.wire.messages import ASSIGN, TRAIN, TrainReply
from server.methods import ifca as clustered
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.secure import parties as sizes
from server.secure.store import SumStore
from tests.deploy.test_sum_faults import KilledError, kill
from tests.support.sum_runs import MIN_SUM, SumFederation, noised, summed

SPLIT: dict[str, Any] = {"clusters": 2, "spread": 0.1, "seed": 1}
"""Options under which each cluster of nine clients has at least `MIN_SUM`, and some clients move."""

LONELY: dict[str, Any] = {"clusters": 2, "spread": 1.0, "seed": 2}
"""Options under which one of nine clients is alone in the second cluster."""

NOISED: dict[str, Any] = {"method": "ifca", **SPLIT}


def federation_of(folder: Path) -> SumFederation:
    return SumFederation(folder, clients=9)


def model_of(folder: Path) -> Arrays:
    return RunDirectory(folder, "toy").load_model()[0]


def rounds_of(folder: Path) -> list[RoundEvent]:
    return [event for event in RunDirectory(folder, "toy").events() if isinstance(event, RoundEvent)]


def sizes_of(folder: Path) -> list[list[float]]:
    return [[event.server[f"clients_{j}"] for j in range(2)] for event in rounds_of(folder)]


def chosen(federation: SumFederation) -> list[int]:
    """Return the cluster that each client chose."""
    return [int(json.loads(s.store.read("toy", CLUSTER))["cluster"]) for s in federation.sessions.values()]


@pytest.mark.parametrize("options", [{}, {"weighting": "examples"}, {"recluster_every": 2}], ids=str)
def test_clusters_in_sums_train_the_models_of_single_replies(options: dict[str, Any], tmp_path: Path) -> None:
    metrics = {}
    for trust in ("local", "helpers"):
        metrics[trust] = federation_of(tmp_path / trust).run(summed("ifca", trust, **SPLIT, **options)).metrics
    local, opened = model_of(tmp_path / "local"), model_of(tmp_path / "helpers")
    assert local.keys() == opened.keys()
    for name in local:
        np.testing.assert_allclose(opened[name], local[name], atol=1e-5)
    known = [Counter(event.clusters.values()) for event in rounds_of(tmp_path / "local")]
    assert min(known[0].values()) >= MIN_SUM
    assert (known[0] != known[1]) is (options.get("recluster_every", 1) == 1), "some clients move"
    assert sizes_of(tmp_path / "helpers") == [[float(one[0]), float(one[1])] for one in known]
    assert metrics["helpers"]["cluster_loss"] == pytest.approx(metrics["local"]["cluster_loss"], abs=1e-5)


def test_a_small_cluster_keeps_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[Arrays] = []
    spread = clustered.spread_copies
    monkeypatch.setattr(clustered, "spread_copies", lambda *about: starts.append(spread(*about)) or starts[-1])
    federation_of(tmp_path).run(summed("ifca", **LONELY))
    end = model_of(tmp_path)
    assert sizes_of(tmp_path) == [[8.0, 1.0], [8.0, 1.0], [9.0, 0.0]]
    assert sha256(group("1", end)) == sha256(group("1", starts[0]))
    assert sha256(group("0", end)) != sha256(group("0", starts[0]))


def test_the_server_learns_no_clients_cluster(tmp_path: Path) -> None:
    federation, config = federation_of(tmp_path), summed("ifca", **SPLIT)
    kinds, replies = list[str](), list[TrainReply]()
    federation.grid.before = lambda message: kinds.append(message.metadata.message_type)

    def listen(message: Message) -> Message:
        if message.metadata.message_type == TRAIN:
            replies.append(decode(TrainReply, message.content))
        return message

    federation.grid.after = listen
    result = federation.run(config)
    assert ASSIGN not in kinds
    assert {*chosen(federation)} == {0, 1}, "clients are in both clusters"
    shapes = {(r.masked["sum"].shape, r.masked["sum"].dtype.str, tuple(map(len, r.sealed))) for r in replies}
    assert len(shapes) == 1
    assert {(r.loss, r.examples, r.steps, *r.update, *r.gradient) for r in replies} == {(0.0, 1, replies[0].steps)}
    assert len({len(r.masked["sum"].tobytes()) for r in replies}) == 1
    assert all(event.clusters == {} for event in rounds_of(tmp_path))
    assert "part for each cluster, which may be that of one client" in result.privacy.guarantee
    assert "number of clients in each cluster" in result.privacy.uncovered


def test_each_client_stores_the_model_of_its_cluster(tmp_path: Path) -> None:
    federation = federation_of(tmp_path)
    federation.run(summed("ifca", **SPLIT))
    end = model_of(tmp_path)
    for cluster, session in zip(chosen(federation), federation.sessions.values(), strict=True):
        assert sha256(load(session.store.read("toy", MODEL))) == sha256(group(str(cluster), end))


@pytest.mark.parametrize("method", ["ifca", "uniform"])
def test_with_noise_a_client_pays_its_update_alone(method: str, tmp_path: Path) -> None:
    inner = {"inner": "ifca", "algorithm__ifca__clusters": 2} if method == "uniform" else SPLIT
    federation, config = federation_of(tmp_path), noised(method=method, **inner)
    result = federation.run(config)
    assert result.privacy.epsilon_spent_max == pytest.approx(50.0, rel=1e-6)
    assert "single updates" not in result.privacy.guarantee
    assert result.privacy.guarantee.startswith("noise on sums of at least 3 clients: (ε = 50, δ = 1e-05)")
    for session in federation.sessions.values():
        entries = session.releaser.budget.ledger(config.privacy).entries()
        assert [(entry.slot.kind, entry.slot.round) for entry in entries] == [("update", n) for n in (1, 2, 3)]
        assert {entry.terms.mechanism for entry in entries} == {"discrete-gaussian-sum"}
        assert sum(entry.terms.cost for entry in entries) == pytest.approx(entries[0].terms.cost * 3)


def test_noised_sizes_of_clusters_are_near_the_true_ones(tmp_path: Path) -> None:
    federation = federation_of(tmp_path)
    federation.run(noised(epsilon=5000.0, **NOISED))
    true = Counter(chosen(federation))
    assert sizes_of(tmp_path)[-1] == pytest.approx([true[0], true[1]], abs=2)


@pytest.mark.parametrize("after", [False, True])
def test_a_killed_server_goes_on_with_the_bits_of_an_uninterrupted_run(
    after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = noised(**NOISED)
    through = federation_of(tmp_path / "whole").run(config)
    federation = federation_of(tmp_path / "killed")
    kill(monkeypatch, SumStore, "fix", after=after)
    with pytest.raises(KilledError):
        federation.run(config)
    federation.connect()
    assert federation.run(config, resume=True).model_sha256 == through.model_sha256


def test_clusters_too_large_for_a_sum_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(clusters: int, trust: str = "helpers") -> Any:
        return federation_of(tmp_path / trust).run(summed("ifca", trust, clusters=clusters))

    numbers = sum(a.size for a in trained_alone(tmp_path).values())
    monkeypatch.setattr(sizes, "MOST_NUMBERS", 3 * numbers + 6)
    assert run(3).status == "completed"
    with pytest.raises(ConfigError, match=rf"an update of {4 * numbers + 8:,} numbers for 4 clusters exceeds"):
        run(4)
    assert run(4, trust="auto").privacy.trust == "local"


def trained_alone(folder: Path) -> Arrays:
    """Return a model of one cluster."""
    federation_of(folder / "one").run(summed("fedavg", rounds=1))
    return model_of(folder / "one")


def test_an_assignment_by_all_losses_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"losses of single clients \(assign=capacity\)"):
        summed("ifca", assign="capacity")
