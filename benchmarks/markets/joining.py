"""A market that joins a finished federation: nothing was fitted on it, and its items are new here but sold elsewhere."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.markets.experiments import SCORER, SCORER_NOISED, SCORER_RATE, Experiment
from benchmarks.markets.study import Bench, Metrics
from benchmarks.studies import passing
from client.tasks.markets.baseline import MarketBaseline
from client.tasks.markets.data.counts import graph_counts
from client.tasks.markets.data.graph import Graph, graph_of
from client.tasks.markets.data.split import Held
from client.tasks.markets.prepare import ReadyMarket, prepare
from common.arrays import Arrays
from common.config.parse import parse
from common.config.run import RunConfig
from common.tasks.markets.counts import DEGREES, KEYS, VALUES, OtherMarketCounts, add_pairs
from common.tasks.markets.metrics import ScoreBlock, ranking_metrics
from common.tasks.markets.task import TASK
from deploy.simulation import simulate_clients

COLD_SHARE = 0.2
"""Of the items that other markets know, as in the exploration."""

DRAWS = 5
"""Draws of cold items a seed: one leaves 22 to 170 queries."""

ALL_DATA = 1e-6
"""A share that holds nothing out: the others bring all their data."""

SHARES = (0.1, 0.3, 1.0)
"""Of its training pairs, that a market has when it joins."""

KINDS = {"clear": SCORER, "noised": SCORER_NOISED}


def cold(bench: Bench, name: str, kind: str, seed: int) -> Metrics:
    """Means over draws of cold items, all of which others know: local degree, degree + others' counts, the scorer."""
    return bench.recalled(f"joining-cold-{name}-{kind}-{seed}", lambda: _cold(bench, name, kind, seed))


def late(bench: Bench, name: str, seed: int) -> dict[str, Metrics]:
    """Share of its training pairs -> metrics of the lines and of the scorer, on random pairs."""
    return bench.recalled(f"joining-late-{name}-{seed}", lambda: dict(_late(bench, name, seed)))


def finished(bench: Bench, name: str, experiment: Experiment, seed: int) -> tuple[Arrays, Arrays]:
    """Model and sums of a federation of all other markets."""
    run = f"without-{name}-{experiment.key}-{seed}"
    flat = experiment.config(seed, "pairs", SCORER_RATE, test_share=ALL_DATA)
    config = parse({**flat, "run-id": run, "catalogue": str(bench.markets.catalogue)})
    with passing(bench.memory.folder, run) as folder:
        simulate_clients(config, bench.markets.without(name), bench.memory.folder, noise_seed=seed)
        arrays, _ = folder.load_model()
    sums = {n: arrays.pop(n) for n in (KEYS, VALUES, DEGREES)}
    return arrays, sums


def _cold(bench: Bench, name: str, kind: str, seed: int) -> Metrics:
    model, statics = finished(bench, name, KINDS[kind], seed)
    graph = graph_of(bench.markets.market(name), 2)
    known = np.flatnonzero(_known_elsewhere(bench, name)[graph.items] > 0)
    rows = []
    for draw in range(DRAWS):
        gone = np.random.default_rng([seed, draw]).permutation(known)[: int(COLD_SHARE * len(known))]
        rows.append(_drawn(graph, gone, model, statics))
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def _known_elsewhere(bench: Bench, name: str) -> NDArray[np.float32]:
    """Degrees in other markets, without noise: which items are asked for does not depend on what is shared."""
    size = len(bench.markets.whole.vocabulary.items)
    others = [market for part in bench.markets.without(name) for market in part.units]
    degrees: NDArray[np.float32] = add_pairs([graph_counts(graph_of(one, 2), size) for one in others])[DEGREES]
    return degrees


def _drawn(graph: Graph, gone: NDArray[np.int64], model: Arrays, statics: Arrays) -> Metrics:
    """Metrics where the items `gone` have lost all pairs and are the only queries."""
    cold_items = np.zeros(len(graph.items), np.float32)
    cold_items[gone] = 1
    edges = graph.edges
    left = graph.without(edges[cold_items[edges].any(axis=1)])
    right = csr_array(graph.weights.multiply(cold_items[:, None]))
    line = MarketBaseline.of(
        left, np.zeros((len(graph.items), 0), np.float32), OtherMarketCounts.of(statics, graph.items)
    )
    found = {"queries": float(len(gone))}
    for key, scores in _scored(line, model).items():
        metrics, _ = ranking_metrics(scores, right, left.weights)
        found |= {f"{key}_mrr20": metrics["mrr20"], f"{key}_ndcg20": metrics["ndcg20"]}
    return found


def _scored(line: MarketBaseline, model: Arrays) -> dict[str, ScoreBlock]:
    weight = model["scorer.weight"][0]
    return {
        "degree": line.popularity,
        "walk": line.scores,
        "shared": line.shared,
        "scorer": lambda queries: line.weighted_scores(queries, weight),
    }


def _late(bench: Bench, name: str, seed: int) -> Iterator[tuple[str, Metrics]]:
    model, statics = finished(bench, name, SCORER, seed)
    config = _config(bench, seed)
    whole = prepare(bench.markets.market(name), bench.markets.whole.vocabulary, config.options_of(TASK), seed)
    for share in SHARES:
        ready = _thinned(whole, share, np.random.default_rng([seed, 7]))
        found: Metrics = {"pairs": float(len(ready.graph.edges))}
        for prefix, told in (("", statics), ("alone_", {})):
            for key, scores in _scored(ready.baseline(ready.graph, told), model).items():
                if not (prefix and key != "scorer"):
                    metrics, _ = ranking_metrics(scores, whole.split.test.right, whole.masked("test"))
                    found |= {f"{prefix}{key}_{m}": metrics[m] for m in ("mrr20", "ndcg20")}
        yield f"{share:g}", found


def _config(bench: Bench, seed: int) -> RunConfig:
    return parse({**SCORER.config(seed, "pairs", SCORER_RATE, width=2), "catalogue": str(bench.markets.catalogue)})


def _thinned(ready: ReadyMarket, share: float, rng: np.random.Generator) -> ReadyMarket:
    """The market with that share of its training pairs; what it lost is no right answer, nor a wrong one."""
    edges = ready.graph.edges
    lost = edges[rng.permutation(len(edges))[int(share * len(edges)) :]]
    graph = ready.graph.without(lost)
    held = Held(graph, ready.split.validation.right, ready.split.validation.ratings)
    return replace(ready, split=replace(ready.split, validation=held))
