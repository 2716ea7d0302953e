"""Parts of clients in sums of clusters: marks, clips, replays and requests that a client refuses."""

from dataclasses import replace

import numpy as np
import pytest

from client.privacy.transforms import Update
from client.secure.helper import helper_service as desk
from client.secure.upload import Blocks
from client.training.evaluation import CLUSTER
from common.arrays import Arrays, add_prefix, group, norm
from common.config.run import RunConfig
from common.errors import RefusedError, WireError
from common.secure.layout import SumLayout, mark, to_clusters, update_clip
from common.secure.quantisation import decode, integer_clip, quantise
from common.secure.terms import SumTerms
from common.wire.messages import AssignRequest, TrainRequest
from tests.support.asked import configured
from tests.support.summing import Summing

K, C, RHO = 3, 2.0, 0.125


def clustered(unit: str = "client") -> RunConfig:
    return configured("ifca", unit=unit, trust="helpers", clip=C, **{"algorithm.ifca.clusters": K})


def copies(server: Summing) -> Arrays:
    """Return K models that differ."""
    return {
        f"{j}/{n}": a + np.float32(0.3 * j) * np.cos(np.arange(a.size, dtype=a.dtype)).reshape(a.shape)
        for j in range(K)
        for n, a in server.model.items()
    }


def asked(server: Summing, model: Arrays | None = None) -> tuple[SumTerms, TrainRequest]:
    """Return the terms of a round, and a request with K models."""
    template = to_clusters(add_prefix("update", server.model), 0, K)
    terms = server.terms(template, RHO)
    return terms, replace(server.request(terms), model=model or copies(server))


@pytest.mark.parametrize("length", [1e-3, 1.0, 1e3, np.inf])
@pytest.mark.parametrize("cluster", range(K))
def test_a_long_update_leaves_its_mark_as_it_is(length: float, cluster: int) -> None:
    exact = {"update/w": np.array([0.6, -0.8], np.float32) * np.float32(length)}
    blocks = Blocks(clustered(), 3, cluster, C).of(Update(exact)).arrays
    assert blocks["cluster"].tolist() == [mark(C) if j == cluster else 0.0 for j in range(K)]
    assert norm(blocks) <= C * (1 + 1e-6)
    expected = 0.0 if length == np.inf else min(length, update_clip(C))
    assert norm(group(f"update/{cluster}", blocks)) == pytest.approx(expected, rel=1e-5)
    assert all(not blocks[f"update/{j}/w"].any() for j in range(K) if j != cluster)

    vector = SumLayout.of(blocks).vector(blocks)
    bound = integer_clip(vector.size)
    numbers = quantise(vector, C, bound, "signed", np.random.default_rng(0))
    assert int(numbers @ numbers) <= bound**2
    assert numbers[cluster] * C / bound == pytest.approx(mark(C), rel=0.01)


@pytest.mark.parametrize(("method", "room"), [("fedavg", C), ("ifca", update_clip(C))])
def test_short_updates_are_scaled_up_to_the_clip_if_the_run_says_so(method: str, room: float) -> None:
    config = configured(method, unit="client", trust="helpers", clip=C, normalise=True)
    blocks = Blocks(config, 3, 0, C).of(Update({"update/w": np.array([6e-4, -8e-4], np.float32)})).arrays
    (update,) = (a for name, a in blocks.items() if name.startswith("update/") and a.any())
    np.testing.assert_allclose(update, [0.6 * room, -0.8 * room], rtol=1e-5)


def test_without_noise_marks_are_ones_and_updates_whole() -> None:
    blocks = Blocks(clustered("none"), 3, 1, 0.0).of(Update({"update/w": np.full(2, 1e3)})).arrays
    assert blocks["cluster"].tolist() == [0.0, 1.0, 0.0]
    assert blocks["update/1/w"].tolist() == [1e3, 1e3]


def test_the_sum_has_each_update_in_the_cluster_of_the_lowest_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "discrete_gaussian", lambda scale, size, stream: np.zeros(size, np.int64))
    server = Summing(clustered())
    terms, request = asked(server)
    opened = decode(server.open(terms, server.train(request)).astype("<u4"), terms)
    template = to_clusters(add_prefix("update", server.model), 0, K)
    found = SumLayout.of(template).arrays(opened, template)
    choices = [session.store.read("toy", CLUSTER) for session in server.sessions.values()]
    sizes = [sum(f'"cluster": {j},'.encode() in choice for choice in choices) for j in range(K)]
    np.testing.assert_allclose(found["cluster"] / mark(C), sizes, atol=0.05)
    for j, size in enumerate(sizes):
        assert (norm(group(f"update/{j}", found)) > 1e-3) is (size > 0)


def test_a_client_asked_again_with_other_models_gives_the_same_bytes() -> None:
    """Else a server could move the models until the client joins another cluster, and pay once."""
    server = Summing(clustered())
    _, request = asked(server)
    first = server.first.train(request)
    again = server.first.train(replace(request, model={n: a + a.dtype.type(1) for n, a in request.model.items()}))
    assert again.sealed == first.sealed
    np.testing.assert_array_equal(again.masked["sum"], first.masked["sum"])
    assert server.spent <= RHO


def test_the_losses_of_clusters_are_refused() -> None:
    server = Summing(clustered())
    request = AssignRequest(1, server.enrolled[0].enrolment, copies(server), "loss", RHO)
    with pytest.raises(RefusedError, match="an assignment is a reply of one client alone"):
        server.first.assign(request)
    assert server.spent == 0


@pytest.mark.parametrize("clusters", [0, K - 1, K + 1])
def test_other_models_than_those_of_the_clusters_are_refused(clusters: int) -> None:
    server = Summing(clustered())
    model = {f"{j}/{n}": a for j in range(clusters) for n, a in server.model.items()} or server.model
    _, request = asked(server, model)
    with pytest.raises(WireError, match="model"):
        server.first.train(request)
    assert server.spent == 0
    assert not server.first.store.read("toy", CLUSTER)


def test_terms_of_one_model_are_refused_before_a_cluster_is_chosen() -> None:
    server = Summing(clustered())
    terms = server.terms(add_prefix("update", server.model), RHO)
    with pytest.raises(RefusedError, match="secure sum: layout "):
        server.first.train(replace(server.request(terms), model=copies(server)))
    assert not server.first.store.read("toy", CLUSTER)
