"""Siamese and SPE on a client: losses by hand, learning, ranking, and parameters that stay private."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from client.data.read import read_all
from client.inference.model_choice import fit_client_only
from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import Session
from client.state import MemoryStore, Store
from client.tasks.learner import Learner
from client.tasks.markets.data.markets import Market, Markets, no_rows
from client.tasks.markets.inference import companions
from client.tasks.markets.learner import MarketsLearner
from client.tasks.markets.networks import embed
from client.tasks.registry import build_learner
from client.training.local_round import train
from client.training.participant import Participant
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.models import parameters, tensors
from common.options import Scalar
from common.tasks.vocabulary import Vocabulary
from common.wire.messages import TrainReply, TrainRequest
from server.record.folder import RunDirectory
from server.run import run
from tests.support.build import learner_of
from tests.support.sensors import Listening, heard

DEMO = read_all("markets", "demo:3-6")
NETWORKS = ("siamese", "spe")
every_network = pytest.mark.parametrize("network", NETWORKS)


def build_config(network: str, method: str = "fedavg", **options: Scalar) -> RunConfig:
    flat: dict[str, Scalar] = {"method": method, "task": "markets", "model": "paper", "run-id": "toy", "rounds": 2}
    flat |= {"federation.min-clients": 1, "federation.wait": 0.1, "tasks.markets.network": network}
    flat |= {"tasks.markets.width": 32, "tasks.markets.embedding": 8, "tasks.markets.batch": 64}
    return parse(flat | options)


def learner(network: str, part: Markets = DEMO) -> MarketsLearner:
    return learner_of(build_config(network), part.vocabulary, part.units)


def step_inputs(of: MarketsLearner) -> dict[str, torch.Tensor]:
    return {n: t[0] for n, t in of.step_inputs(1, torch.Generator().manual_seed(0)).items()}


def test_the_tower_pulls_neighbors_together_and_pushes_negatives_apart() -> None:
    of = learner("siamese")
    model, inputs = parameters(of.module), step_inputs(of)
    z = [of.scores(model, {}, k)(np.arange(len(m.vectors))) for k, m in enumerate(of.markets)]
    firsts = np.concatenate([[0], np.cumsum([len(block) for block in z])])
    terms = []
    for a, b, c in inputs["triples"].tolist():
        k = int(np.searchsorted(firsts, a, side="right")) - 1
        near, far = (2 - 2 * float(z[k][a - firsts[k], o - firsts[k]]) for o in (b, c))
        terms.append(near + max(0.0, 1.0 - np.sqrt(max(far, 0))) ** 2)
    loss = of.loss(tensors(model), of.batch(TrainRequest(1, "toy:0", model)), inputs)
    assert float(loss) == pytest.approx(0.5 * np.mean(terms), rel=1e-4)


@pytest.mark.parametrize("network", ["sgc", *NETWORKS])
def test_the_number_of_places_does_not_change_an_embedding(network: str) -> None:
    of = learner(network)
    params, inputs = tensors(parameters(of.module)), of.batch(TrainRequest(1, "toy:0", {}))
    few = torch.randint(of.size, (of.size // 3,), generator=torch.Generator().manual_seed(0))
    once, many = (embed(of.module, params, inputs, places) for places in (few, few.repeat(4)))
    torch.testing.assert_close(many, once.repeat(4, 1))


def test_spe_reads_items_and_degrees_and_learns_by_bpr() -> None:
    of = learner("spe")
    rng = np.random.default_rng(1)
    model = {n: a + 0.3 * rng.standard_normal(a.shape).astype(a.dtype) for n, a in parameters(of.module).items()}
    items = np.concatenate([market.graph.items for market in of.markets])
    degrees = np.concatenate([np.count_nonzero(market.graph.weights.toarray(), axis=1) for market in of.markets])
    delta = 1 / (1 + np.exp(-(model["gamma"][0] * np.log1p(degrees) + model["gamma"][1])))[:, None]
    z = (1 - delta) * (of.triple_source.features.numpy() @ model["phi"]) + delta * model["ids"][items]
    inputs = step_inputs(of)
    a, b, c = (z[places] for places in inputs["triples"].numpy().T)
    by_hand = np.log1p(np.exp(model["theta"][0] * ((a * c).sum(1) - (a * b).sum(1)))).mean()
    loss = of.loss(tensors(model), of.batch(TrainRequest(1, "toy:0", model)), inputs)
    assert float(loss) == pytest.approx(by_hand, rel=1e-4)
    size = len(of.markets[0].vectors)
    np.testing.assert_allclose(of.scores(model, {}, 0)(np.arange(size)), z[:size] @ z[:size].T, rtol=1e-3, atol=1e-4)


@every_network
def test_the_networks_use_no_graph_and_learn_from_triples(network: str) -> None:
    of = learner(network)
    torch.testing.assert_close(of.triple_source.propagated, of.triple_source.features)
    config = build_config(network, **{"training.optimizer": "adam", "training.lr": 0.02})
    model = parameters(of.module)
    member = Participant("ann", "toy", 0, of, MemoryStore(), TrainRequest(1, "toy:0", model), 60)
    before = of.evaluate(model, {}, "test")[0]["mrr20"]
    [reply] = train(config.method_options, [member])
    assert isinstance(reply, TrainReply)
    private = {n: t.numpy() for n, t in member.store.load("toy").groups.get("head.after", {}).items()}
    after = {**model, **{n: model[n] - u for n, u in reply.update.items()}, **private}
    assert of.evaluate(after, {}, "test")[0]["mrr20"] > before + 0.05


@every_network
def test_a_market_without_pairs_takes_part_with_zeros(network: str) -> None:
    of = learner(network, Markets((Market("uk", no_rows(), no_rows()),), DEMO.vocabulary))
    model = parameters(of.module)
    member = Participant("ann", "toy", 0, of, MemoryStore(), TrainRequest(1, "toy:0", model), 2)
    [reply] = train(build_config(network).method_options, [member])
    assert isinstance(reply, TrainReply)
    assert not any(update.any() for update in reply.update.values())
    assert of.evaluate(model, {}, "test") == ({}, {})


@every_network
def test_markets_train_stacked_as_they_do_alone(network: str) -> None:
    config = build_config(network)

    def member(number: int) -> Participant:
        of = learner(network, replace(DEMO, units=DEMO.units[number : number + 1]))
        request = TrainRequest(1, "toy:0", parameters(of.module))
        return Participant(f"client-{number}", "toy", 0, of, MemoryStore(), request, 3)

    together = train(config.method_options, [member(0), member(1)])
    for number, reply in enumerate(together):
        [alone] = train(config.method_options, [member(number)])
        assert isinstance(reply, TrainReply)
        assert isinstance(alone, TrainReply)
        for name, update in alone.update.items():
            np.testing.assert_allclose(reply.update[name], update, rtol=1e-3, atol=1e-6)


def run_federated(config: RunConfig, folder: Path) -> tuple[Listening, list[Store], Arrays]:
    stores: list[Store] = [MemoryStore() for _ in DEMO.units]
    grid = Listening({k + 1: _session(k, store) for k, store in enumerate(stores)})
    run(grid, config, folder)
    return grid, stores, RunDirectory(folder, "toy").load_model()[0]


def _session(number: int, store: Store) -> Session:
    def build(config: RunConfig, vocabulary: Vocabulary) -> Learner:
        return build_learner(config, replace(DEMO, units=DEMO.units[number : number + 1]))

    return Session(f"client-{number}", build, store, in_memory(Policy(share_metrics="always")))


@pytest.mark.parametrize("noise", [{}, {"privacy.unit": "client"}], ids=["plaintext", "noise"])
@pytest.mark.parametrize("method", ["fedavg", "fedrep", "ditto", "local"])
def test_items_own_vectors_never_leave_a_market(method: str, noise: dict[str, Scalar], tmp_path: Path) -> None:
    grid, stores, end = run_federated(build_config("spe", method, **noise), tmp_path)
    replies = [reply for _, reply in heard(grid, TrainReply)]
    assert len(replies) == 2 * len(DEMO.units)
    assert not any(name.startswith("ids") for reply in replies for name in (*reply.update, *reply.gradient))
    assert not end["ids"].any(), "of the server's model they stay as they were"
    for store, market in zip(stores, DEMO.units, strict=True):
        vectors = store.load("toy").groups["head.after"]["ids"].numpy()
        moved = np.flatnonzero(vectors.any(axis=1))
        assert len(moved)
        items = learner_of(build_config("spe"), DEMO.vocabulary, [market]).markets[0].graph.items
        assert set(moved.tolist()) <= set(items.tolist())


def test_items_own_vectors_are_fitted_anew_where_a_run_did_not_save_them() -> None:
    of, config = learner("spe"), build_config("spe", **{"training.lr": 0.05, "training.local-steps": 20})
    trained = parameters(of.module)
    model = fit_client_only(config, of, trained)
    assert {name for name in trained if (model[name] != trained[name]).any()} == {"ids"}
    batch, inputs = of.batch(TrainRequest(1, "", {})), step_inputs(of)
    before, after = (float(of.loss(tensors(one), batch, inputs)) for one in (trained, model))
    assert after < before


@every_network
def test_the_networks_rank_related_items(network: str) -> None:
    of = learner(network, replace(DEMO, units=DEMO.units[:1]))
    config, [market] = build_config(network), of.markets
    rng = np.random.default_rng(0)
    model = {n: a + 0.1 * rng.standard_normal(a.shape).astype(a.dtype) for n, a in parameters(of.module).items()}
    query = int(market.graph.items[0])
    ranked = companions(config, DEMO.vocabulary, model, DEMO.units[0], query, top=3)
    assert len(ranked) == 3
    assert [c.score for c in ranked] == sorted((c.score for c in ranked), reverse=True)


@every_network
def test_pf_gnn_trains_encoders_of_sgc_only(network: str) -> None:
    with pytest.raises(ConfigError, match="network=sgc"):
        build_config(network, "pfgnn")
