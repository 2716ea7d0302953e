"""Market that joins a finished federation.

No model was fitted on it, and its items are sold in other markets.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from client.data.dataset import AnyDataset
from client.tasks.markets.baseline import MarketBaseline
from client.tasks.markets.data.graph import Graph, Held, graph_counts, graph_of
from client.tasks.markets.data.markets import Market
from client.tasks.markets.learner import ReadyMarket, prepare
from common.arrays import Arrays
from common.config.parse import parse
from common.tasks.markets.counts import DEGREES, KEYS, VALUES, OtherMarketCounts, add_pairs
from common.tasks.markets.metrics import ScoreBlock, ranking_metrics
from common.tasks.markets.options import MarketsOptions
from deploy.simulation.grid import simulate
from studies.harness.bench import Bench, run_folder
from studies.harness.experiment import Experiment, task_options
from studies.harness.row import Metrics
from studies.markets.experiments import SCORER, SCORER_NOISED, SHARES, under

COLD_SHARE = 0.2
"""Share of the items sold in other markets that lose all their pairs, as in the exploration."""

DRAWS = 5
"""Draws of cold items per seed; one draw has 22 to 170 queries."""

NO_TEST_SPLIT = 1e-6
"""Share that holds nothing out: the other markets train on all their data."""

KINDS = {"clear": SCORER, "noised": SCORER_NOISED}


def cold(bench: Bench, kind: str, seed: int, name: str) -> Metrics:
    """Return metrics of baselines and scorer on cold items of a new market, mean over draws.

    The cold items are all sold in other markets.
    """
    model, statics = _train(bench, name, KINDS[kind], seed)
    graph = graph_of(_market(bench.dataset, name), 2)
    sold = np.flatnonzero(_degrees_elsewhere(bench.dataset, name)[graph.items] > 0)
    rows = []
    for draw in range(DRAWS):
        removed = np.random.default_rng([seed, draw]).permutation(sold)[: int(COLD_SHARE * len(sold))]
        rows.append(_without_items(graph, removed, model, statics))
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def late(bench: Bench, seed: int, name: str) -> dict[float, Metrics]:
    """Return share of its training pairs -> metrics of a late-joining market on random pairs.

    The metrics are of baselines and of the scorer.
    """
    model, statics = _train(bench, name, SCORER, seed)
    options = MarketsOptions.model_validate({"protocol": "pairs", "features": "ids", "width": 2, "count-offset": True})
    whole = prepare(_market(bench.dataset, name), bench.dataset.vocabulary, options, seed)
    found = {}
    for share in SHARES:
        ready = _drop_pairs(whole, share, np.random.default_rng([seed, 7]))
        metrics = {"pairs": float(len(ready.graph.edges))}
        metrics |= _metrics_of(whole, ready.baseline(ready.graph, statics), model)
        alone = _metrics_of(whole, ready.baseline(ready.graph, {}), model)
        metrics |= {f"alone_{key}": value for key, value in alone.items() if key.startswith("scorer")}
        found[share] = metrics
    return found


def _train(bench: Bench, name: str, experiment: Experiment, seed: int) -> tuple[Arrays, Arrays]:
    """Return model and summed counts of a federation of all other markets."""
    flat = {
        **under("pairs", experiment).settings,
        **experiment.grid[0],
        **task_options("markets", {"test-share": NO_TEST_SPLIT}),
        "seed": seed,
        "run-id": f"without-{name}-{experiment.key}-{seed}",
        "catalogue": str(bench.vocabulary),
    }
    others = replace(bench.dataset, units=tuple(_others(bench.dataset, name)))
    with run_folder(bench.store.folder, str(flat["run-id"])) as folder:
        simulate(parse(flat), others, bench.store.folder, noise_seed=seed)
        arrays, _ = folder.load_model()
    return arrays, {key: arrays.pop(key) for key in (KEYS, VALUES, DEGREES)}


def _market(dataset: AnyDataset, name: str) -> Market:
    found: Market = next(market for market in dataset.units if market.name == name)
    return found


def _others(dataset: AnyDataset, name: str) -> list[Market]:
    return [market for market in dataset.units if market.name != name]


def _degrees_elsewhere(dataset: AnyDataset, name: str) -> NDArray[np.float32]:
    """Return degrees in other markets, without noise: the queries do not depend on the kind of counts."""
    size = len(dataset.vocabulary.items)
    counts = [graph_counts(graph_of(market, 2), size) for market in _others(dataset, name)]
    degrees: NDArray[np.float32] = add_pairs(counts)[DEGREES]
    return degrees


def _without_items(graph: Graph, removed: NDArray[np.int64], model: Arrays, statics: Arrays) -> Metrics:
    """Return metrics where some items have lost all pairs and are the only queries."""
    is_removed = np.zeros(len(graph.items), np.float32)
    is_removed[removed] = 1
    left = graph.without(graph.edges[is_removed[graph.edges].any(axis=1)])
    right = csr_array(graph.weights.multiply(is_removed[:, None]))
    counts = MarketBaseline.of(
        left, np.zeros((len(graph.items), 0), np.float32), OtherMarketCounts.of(statics, graph.items)
    )
    metrics = {"queries": float(len(removed))}
    for key, scores in _scores(counts, model).items():
        found, _ = ranking_metrics(scores, right, left.weights)
        metrics |= {f"{key}_{metric}": found[metric] for metric in ("mrr20", "ndcg20")}
    return metrics


def _metrics_of(whole: ReadyMarket, counts: MarketBaseline, model: Arrays) -> Metrics:
    """Return metrics of all scores on the test pairs of the whole market."""
    metrics: Metrics = {}
    for key, scores in _scores(counts, model).items():
        found, _ = ranking_metrics(scores, whole.split.test.right, whole.masked("test"))
        metrics |= {f"{key}_{metric}": found[metric] for metric in ("mrr20", "ndcg20")}
    return metrics


def _scores(counts: MarketBaseline, model: Arrays) -> dict[str, ScoreBlock]:
    weight = model["scorer.weight"][0]
    return {
        "degree": counts.popularity,
        "walk": counts.scores,
        "shared": counts.shared,
        "scorer": lambda queries: counts.weighted_scores(queries, weight),
    }


def _drop_pairs(ready: ReadyMarket, share: float, rng: np.random.Generator) -> ReadyMarket:
    """Return the market with that share of its training pairs.

    The removed pairs are neither right nor wrong answers.
    """
    edges = ready.graph.edges
    removed = edges[rng.permutation(len(edges))[int(share * len(edges)) :]]
    held = Held(ready.graph.without(removed), ready.split.validation.right, ready.split.validation.ratings)
    return replace(ready, split=replace(ready.split, validation=held))
