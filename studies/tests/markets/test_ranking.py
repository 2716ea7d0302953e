"""A ranking by Z̃ is measured beside that by Z."""

import numpy as np
import torch

from common.config.parse import parse
from common.methods.pfgnn import PFGNN
from common.models import parameters
from common.tasks.markets.metrics import ranking_metrics
from common.tasks.markets.model import assignments
from studies.markets.ranking import UnpooledRanking
from tests.support.build import learner_of
from tests.support.market_learners import DEMO, learner

SMALL = {"tasks.markets.width": 32, "tasks.markets.embedding": 8, "tasks.markets.batch": 64}


def test_the_ranking_is_by_the_projection_of_the_embeddings_on_the_clusters() -> None:
    config = parse({"method": "pfgnn", "task": "markets", "model": "paper", "algorithm.pfgnn.clusters": 5, **SMALL})
    of = learner_of(config, DEMO.vocabulary, DEMO.units[:1])
    model, [market] = parameters(of.module), of.markets
    plain, ranking = of.evaluate(model, {}, "test"), UnpooledRanking()
    with ranking.patch():
        assert of.evaluate(model, {}, "test") == plain
    z = of.triple_source.propagated.numpy() @ model["phi.mean"]
    c = assignments(torch.from_numpy(z), torch.from_numpy(model["kappa"]), PFGNN().tau).numpy().astype(np.float64)
    projected = c @ np.linalg.lstsq(c, z, rcond=None)[0]
    expected, _ = ranking_metrics(lambda q: projected[q] @ projected.T, market.split.test.right, market.masked("test"))
    found = ranking.found[market.split.market.name]
    assert found.keys() == {"unpooled_mrr20", "unpooled_ndcg20"}
    np.testing.assert_allclose(found["unpooled_ndcg20"], expected["ndcg20"], rtol=1e-2)
    assert found["unpooled_ndcg20"] != plain[0]["ndcg20"]


def test_models_without_clusters_are_ranked_once() -> None:
    of, ranking = learner(), UnpooledRanking()
    with ranking.patch():
        of.evaluate(parameters(of.module), {}, "test")
    assert ranking.found == {}
