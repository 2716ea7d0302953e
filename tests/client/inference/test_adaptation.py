"""Adaptation of a finished run's model to a late-joining client."""

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load

from client.data.read import read_all
from client.inference.stored_models import adapt
from client.owner.policy import Policy
from client.privacy.simulation import in_memory
from client.session import MODEL, Session
from client.state import MemoryStore
from client.tasks.markets.learner import MarketsLearner
from client.training.foresight import training_loss
from common.arrays import Arrays, group, sha256
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import RefusedError
from common.models import parameters
from common.options import Scalar
from common.tasks.markets.pairs import no_counts
from common.tasks.markets.vocabulary import MarketCatalogue
from common.tasks.registry import TASKS
from common.tasks.vocabulary import Vocabulary
from server.aggregation.clusters import spread_copies
from tests.support.build import learner_of, task_model
from tests.support.sensors import APART, MEASURES, road_config, sensor, world
from tests.support.sensors import session as road_session

DEMO = read_all("markets", "demo:4-5")
GOODS = DEMO.vocabulary


def configured(method: str, model: str = "paper", **options: Scalar) -> RunConfig:
    small = {"tasks.markets.width": 16, "tasks.markets.embedding": 8, "tasks.markets.batch": 64}
    return parse(
        {"method": method, "task": "markets", "model": model, "run-id": "done", "rounds": 3, **small, **options}
    )


class LateClient:
    """Late-joining client with its state, and the finished model of a run."""

    def __init__(self, config: RunConfig, policy: Policy | None = None) -> None:
        self.store, self.config = MemoryStore(), config
        self.session = Session("late", self._learner, self.store, in_memory(policy or Policy()))
        rng = np.random.default_rng(0)
        start = parameters(task_model(config, GOODS))
        self.model = {n: a + 0.1 * rng.standard_normal(a.shape).astype(a.dtype) for n, a in start.items()}

    def _learner(self, config: RunConfig, names: Vocabulary) -> MarketsLearner:
        assert isinstance(names, MarketCatalogue)
        return learner_of(config, names, DEMO.units)

    def kept(self) -> Arrays:
        return load(self.store.read("done", MODEL) or b"")

    def own(self) -> set[str]:
        return {name.partition(".")[0] for name in self.store.load("done").groups}


def test_under_pfgnn_the_private_part_is_trained_and_the_shared_part_stays() -> None:
    late = LateClient(configured("pfgnn"))
    metrics = adapt(late.session, late.config, GOODS, late.model)
    assert {"mrr20", "global_mrr20", "walk_mrr20"} <= set(metrics)
    assert metrics["mrr20"] != metrics["global_mrr20"]
    for name, kept in late.kept().items():
        np.testing.assert_array_equal(kept, late.model[name])
    assert {"head", "own"} <= late.own()
    assert late.store.load("done").round == 3
    again = LateClient(configured("pfgnn"))
    assert adapt(again.session, again.config, GOODS, again.model) == metrics, "the same market, the same model"


def test_without_private_layers_the_model_is_used_unchanged() -> None:
    late = LateClient(configured("fedavg", "default"))
    statics = no_counts(len(GOODS.items))
    metrics = adapt(late.session, late.config, GOODS, {**late.model, **statics})
    [market] = DEMO.units
    expected, _ = learner_of(late.config, GOODS, [market]).evaluate(late.model, statics, "test")
    assert {key: metrics[key] for key in expected} == expected
    assert not late.own()
    assert set(late.kept()) == {*late.model, *statics}


def test_the_policy_applies_to_adaptation() -> None:
    late = LateClient(configured("pfgnn"), Policy(methods=("fedavg",)))
    with pytest.raises(RefusedError, match="does not allow method 'pfgnn'"):
        adapt(late.session, late.config, GOODS, late.model)


@pytest.mark.parametrize("method", ["ifca", "fedstl"])
def test_the_cluster_with_the_lowest_loss_is_selected(method: str) -> None:
    config = road_config(method, clusters=3, **APART)
    road, start = road_session("late", (sensor(0),)), world(config)
    models = spread_copies(start, 3, 0.5, config.seed)
    learner = learner_of(config, MEASURES, (sensor(0),))
    losses = [training_loss(learner, group(str(j), models), {}) for j in range(3)]
    metrics = adapt(road, config, MEASURES, models)
    assert np.isfinite(metrics["mse"])
    kept = load(road.store.read("toy", MODEL))
    shared = {
        n: a for n, a in group(str(int(np.argmin(losses))), models).items() if not n.startswith(TASKS["traffic"].head)
    }
    assert shared
    for name, array in shared.items():
        np.testing.assert_array_equal(kept[name], array)


@pytest.mark.parametrize("method", ["ifca", "fedstl", "ditto"])
def test_a_client_without_training_data_uses_the_first_model(method: str) -> None:
    """Its training split is one gap."""
    clustered = method in ("ifca", "fedstl")
    config = road_config(method, **({"clusters": 3, **APART} if clustered else {}))
    start = world(config)
    models = spread_copies(start, 3, 0.5, config.seed) if clustered else start
    series = sensor(0)
    observed = series.observed & (np.arange(len(series.values)) >= 20 * 24)[:, None]
    road = road_session("late", (replace(series, observed=observed),))
    metrics = adapt(road, config, MEASURES, models)
    assert np.isfinite(metrics["mse"])
    kept = load(road.store.read("toy", MODEL))
    assert sha256(kept) == sha256(group("0", models) if clustered else models)
    assert not road.store.load("toy").groups
