"""Simulated federations of markets: every method trains, summed counts help new items, stacking has no effect."""

from pathlib import Path

import pytest

from client.data.read import partition, read_all
from common.config.parse import parse
from common.config.run import RunConfig
from common.options import Scalar
from deploy.simulation.grid import simulate_clients
from server.record.result import Result

DEMO = read_all("markets", "demo:1-5")


def configured(**options: Scalar) -> RunConfig:
    algorithm = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    small = {"tasks.markets.width": 32, "tasks.markets.embedding": 8, "tasks.markets.batch": 128}
    start: dict[str, Scalar] = {"method": "fedavg", "task": "markets", "run-id": "markets", "rounds": 3}
    return parse({**start, "federation.min-clients": 1, "evaluate-every": 3, **small, **algorithm})


def trained(folder: Path, **options: Scalar) -> Result:
    return simulate_clients(configured(**options), partition(DEMO, 0), folder)


@pytest.mark.parametrize("model", ["default", "paper"])
@pytest.mark.parametrize("method", ["fedavg", "fedprox", "fedrep", "ditto", "local"])
def test_every_method_trains_both_models(model: str, method: str, tmp_path: Path) -> None:
    result = trained(tmp_path, method=method, model=model)
    assert result.status == "completed"
    assert result.metrics.keys() >= {"mrr10", "mrr20", "ndcg10", "ndcg20", "recall20", "walk_mrr20", "degree_mrr20"}
    assert 0 < result.metrics["mrr20"] < 1


def test_the_default_model_matches_its_baseline_and_exceeds_popularity(tmp_path: Path) -> None:
    metrics = trained(tmp_path, rounds=10, evaluate_every=10).metrics
    assert metrics["ndcg20"] > metrics["walk_ndcg20"] - 0.01
    assert metrics["mrr20"] > 1.2 * metrics["degree_mrr20"]


def test_stacked_clients_equal_single_clients(tmp_path: Path) -> None:
    results = [
        simulate_clients(
            configured(model=model), partition(DEMO, 0), tmp_path / model / str(together), together=together
        )
        for model in ("default", "paper")
        for together in (1, 4)
    ]
    for lone, stacked in zip(results[::2], results[1::2], strict=True):
        assert stacked.metrics == pytest.approx(lone.metrics, abs=1e-3)
