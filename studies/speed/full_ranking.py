"""Time and memory of ranking every item of a large market for every query.

`python -m studies speed full_ranking` makes a graph of the size of XMarket's US electronics (36,000 items, 2 million
pairs, a popularity tail), holds a tenth of the pairs out, and ranks all items for each: once with embeddings of width 128,
as the paper's networks score, once with the count-weighted walk, and once with all features of the default's scorer. The
limits for the embeddings are 90 s and 2 GB. Prints a table and writes JSON.
"""

import os
import resource
from multiprocessing import get_context
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from client.tasks.markets.baseline import MarketBaseline
from client.tasks.markets.data.graph import Graph, Sparse, symmetric
from common.tasks.markets.metrics import ScoreBlock, ranking_metrics
from common.tasks.markets.pairs import FEATURES, OtherMarketCounts
from studies.speed import timing

LIMIT = {"seconds": 90.0, "gigabytes": 2.0}
KINDS = ("embeddings", "walk", "scorer")


def generate(items: int, pairs: int, seed: int = 0) -> tuple[Graph, Sparse]:
    """Return a training graph and the right answers.

    Pairs of items are drawn by popularity; a tenth of them is held out.
    """
    rng = np.random.default_rng(seed)
    fame = 1 / np.arange(1, items + 1) ** 0.4
    drawn = rng.choice(items, size=(int(1.3 * pairs), 2), p=fame / fame.sum())
    edges = np.unique(np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1), axis=0)
    edges = edges[np.sort(rng.permutation(len(edges))[:pairs])]
    held = rng.random(len(edges)) < 0.1
    train = symmetric(edges[~held], np.ones(int((~held).sum()), np.float32), items)
    return Graph(np.arange(items), train), symmetric(edges[held], np.ones(int(held.sum()), np.float32), items)


def scores_of(kind: str, graph: Graph) -> ScoreBlock:
    """Return scores: by random embeddings, the walk, or every feature of the scorer."""
    n = len(graph.items)
    if kind == "embeddings":
        z = np.random.default_rng(1).standard_normal((n, 128), np.float32)
        return lambda queries: z[queries] @ z.T
    counts = MarketBaseline.of(graph, np.zeros((n, 0), np.float32), OtherMarketCounts.zeros(n))
    weight = np.full(len(FEATURES), 0.1, np.float32)
    return counts.scores if kind == "walk" else lambda queries: counts.weighted_scores(queries, weight)


def measure(kind: str, items: int, pairs: int) -> dict[str, Any]:
    """Return seconds and the largest memory of this process, which runs nothing else."""
    graph, right = generate(items, pairs)
    scores = scores_of(kind, graph)
    before = _gigabytes()
    (metrics, queries), seconds = timing.time_work(lambda: ranking_metrics(scores, right, graph.weights))
    return {
        "kind": kind,
        "queries": queries,
        "seconds": seconds,
        "gigabytes": _gigabytes(),
        "gigabytes_before": before,
        **metrics,
    }


def main() -> None:
    """Measure, print, write."""
    parser = timing.options(__doc__, "full_ranking")
    parser.add_argument("--items", type=int, default=36_000)
    parser.add_argument("--pairs", type=int, default=2_000_000)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    options = parser.parse_args()
    table = Table("scores", "queries", "seconds", "GB, peak", title=f"{options.items:,} items, {options.pairs:,} pairs")
    runs = []
    for kind in options.kinds:
        with get_context("spawn").Pool(1) as pool:
            run = pool.apply(measure, (kind, options.items, options.pairs))
        table.add_row(kind, f"{run['queries']:,}", f"{run['seconds']:.1f}", f"{run['gigabytes']:.2f}")
        runs.append(run)
    Console().print(table)
    result = {
        "items": options.items,
        "pairs": options.pairs,
        "limit": LIMIT,
        "threads": int(os.environ.get("OMP_NUM_THREADS", "0")) or os.cpu_count(),
        "runs": runs,
    }
    timing.write(options.out, result, "numpy", "torch")


def _gigabytes() -> float:
    """Return the largest memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
