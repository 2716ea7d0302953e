"""Markets learner: scorer queries or BPR triples, full-ranking metrics (algorithms.md §5.1, §5.5)."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.func import functional_call

from client.stacked_tensors import Tensors, cross_entropies
from client.tasks.learner import shell
from client.tasks.markets.data.counts import bounded_counts, noised
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.networks import embed, network_inputs, similarity, triple_loss
from client.tasks.markets.prepare import ReadyMarket, prepare
from client.tasks.markets.triples import TripleSource
from common.arrays import Arrays, Floats, Floats32, Ints
from common.models import tensors
from common.tasks.markets.counts import KEYS, add_pairs, includes, no_counts
from common.tasks.markets.features import FEATURES
from common.tasks.markets.metrics import ScoreBlock, ranking_metrics
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.task import TASK
from common.tasks.markets.vocabulary import MarketCatalogue
from common.tasks.spec import TaskRun
from common.wire.messages import Metrics, TrainRequest

BASELINE_METRICS = ("mrr20", "ndcg20")
"""Suffixes of the metrics that are reported for baselines."""

SEEN_PREFIX = "seen_"
"""Prefix of metrics over queries that other markets have; for `protocol=cold` with shared counts."""

QueryMetrics = tuple[Metrics, int]
"""Means of metrics over queries, and the number of queries."""


class MarketsLearner:
    """Learner of the markets task: a client's markets in one run; most clients have one.

    Args:
        run: View of the run's configuration.
        dataset: Markets of the client.
    """

    task = TASK.name
    rows = 0
    shared: tuple[str, ...] = ()

    def __init__(self, run: TaskRun[MarketsOptions, MarketCatalogue], dataset: Markets) -> None:
        self.options = run.options
        self.module, self._item_count = shell(TASK, run), len(run.vocabulary.items)
        self.markets = [prepare(market, run.vocabulary, self.options, run.seed) for market in dataset.units]
        self._paper = run.model == "paper"
        graphs = [market.graph for market in self.markets]
        self._source = TripleSource.of(graphs, [m.vectors for m in self.markets], self.options) if self._paper else None
        self._inputs = network_inputs(self.triple_source.propagated, graphs, self.options) if self._paper else {}
        self.examples = sum(len(graph.edges) for graph in graphs)
        self.size = len(self.triple_source.features) if self._paper else min(self.examples, self.options.fit_most)
        self._queries: Tensors = {}

    def batch(self, request: TrainRequest) -> Tensors:
        """Return the network's inputs of all items, or the scorer's E queries with 1 + R candidates each."""
        if self._paper:
            return self._inputs
        if not self._queries:  # constant in a run, like graph and sums
            features = [market.training_features(request.statics) for market in self.markets]
            empty = np.zeros((1, 1 + self.options.rivals, len(FEATURES)), np.float32)  # for a market without pairs
            numbers = torch.from_numpy(np.concatenate([*features, empty]))
            self._queries = {"numbers": numbers, "weights": (torch.arange(len(numbers)) < len(numbers) - 1).float()}
        return self._queries

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """Sample the BPR triples of each step, steps × B × 3; the scorer uses all its queries in every step."""
        if not self._paper:
            return {}
        return {"triples": torch.stack([self.triple_source.triples(generator) for _ in range(steps)])}

    def loss(self, params: Tensors, batch: Tensors, inputs: Tensors) -> Tensor:
        """Compute a network's loss of its triples, or the mean cross-entropy of the right candidate."""
        if self._paper:
            return triple_loss(self.options, params, embed(self.module, params, batch, inputs["triples"]))
        scores = functional_call(self.module, params, (batch["numbers"],))
        first = torch.zeros(scores.shape[0], dtype=torch.int64)
        losses = cross_entropies(scores, first)
        return (batch["weights"] * losses).sum() / batch["weights"].sum().clamp(min=1)

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Return the mean of each metric over the queries of all markets, and their number."""
        scores = [self.scores(model, statics, k) for k in range(len(self.markets))]
        return _pool([_evaluate(s, market, split, statics) for s, market in zip(scores, self.markets, strict=True)])

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """Return metrics of the baselines: walk, popularity and, if counts are shared, popularity with counts."""
        return _pool([_baselines(market, statics, split) for market in self.markets])

    def unit_values(self, model: Arrays, statics: Arrays, split: str) -> Floats:
        """Return NDCG@20 of each market."""
        return self._each_market(split, [self.scores(model, statics, k) for k in range(len(self.markets))])

    def baseline_values(self, statics: Arrays, split: str) -> Floats:
        """Return NDCG@20 of the random walk in each market."""
        return self._each_market(split, [market.baseline(market.graph, statics).scores for market in self.markets])

    def _each_market(self, split: str, scores: Sequence[ScoreBlock]) -> Floats:
        pairs = zip(scores, self.markets, strict=True)
        rows = [ranking_metrics(s, m.split.right(split), m.masked(split))[0] for s, m in pairs]
        return np.array([row.get("ndcg20", np.nan) for row in rows])

    def scores(self, model: Arrays, statics: Arrays, k: int) -> ScoreBlock:
        """Return the scoring function of the k-th market: b query items -> scores of its n items, b × n.

        The networks rank by Z, not by Z̃ = P⁻¹(ξ) of Eq 15 (docs/results/markets.md).
        """
        market = self.markets[k]
        if not self._paper:
            baseline = market.baseline(market.graph, statics)
            return partial(baseline.weighted_scores, weight=model["scorer.weight"][0])
        first = sum(len(earlier.vectors) for earlier in self.markets[:k])
        with torch.no_grad():
            places = torch.arange(first, first + len(market.vectors))
            z = embed(self.module, tensors(model), self._inputs, places).numpy()
        return partial(similarity, z, model=model)

    def counts(self) -> Arrays:
        """Return the counts of users of pairs and of items, summed over the client's markets."""
        return add_pairs([market.counts for market in self.markets])

    def private_counts(self, noise_std: float, rng: np.random.Generator) -> Arrays:
        """Return the counts with noise on each.

        A user may be in all of the client's markets and adds a vector of L2 norm at most 1 to the counts of each; the noise is
        multiplied by their number.
        """
        size = self._item_count
        rated = [m.split.validation.ratings for m in self.markets if not m.split.market.listed]
        parts = [bounded_counts(ratings, size, rng, np.float64) for ratings in rated if len(ratings)]
        return noised(add_pairs([*parts, no_counts(size)], dtype=np.float64), size, noise_std * max(len(rated), 1), rng)

    def without_own(self, statics: Arrays, sent: Arrays) -> Arrays:
        """Return the sums without this client's counts; unchanged if its reply came too late to be summed."""
        if KEYS not in statics or not sent or not includes(statics, sent):
            return statics
        return add_pairs([statics, sent], [1.0, -1.0])

    @property
    def triple_source(self) -> TripleSource:
        """Tensors of all markets of the client, from which triples are drawn."""
        assert self._source is not None, "only the paper's networks train on triples"
        return self._source


def _evaluate(
    scores: Callable[[Ints], Floats32], market: ReadyMarket, split: str, statics: Arrays
) -> list[QueryMetrics]:
    """Return metrics over all queries; for cold items with shared counts, also over items sold elsewhere."""
    right, masked = market.split.right(split), market.masked(split)
    results = [ranking_metrics(scores, right, masked)]
    if market.options.protocol == "cold" and KEYS in statics:
        seen = (market.other_counts(statics).degrees > 0).astype(np.float32)
        metrics, count = ranking_metrics(scores, csr_array(right.multiply(seen[:, None])), masked)
        results.append(({f"{SEEN_PREFIX}{key}": value for key, value in metrics.items()}, count))
    return results


def _baselines(market: ReadyMarket, statics: Arrays, split: str) -> list[QueryMetrics]:
    baseline = market.baseline(market.graph, statics)
    predictors = {"walk": baseline.scores, "degree": baseline.popularity}
    if statics:
        predictors["shared"] = baseline.shared
    return [
        ({f"{name}_{key}": value for key, value in metrics.items() if key.endswith(BASELINE_METRICS)}, count)
        for name, scores in predictors.items()
        for metrics, count in _evaluate(scores, market, split, statics)
    ]


def _pool(markets: Sequence[list[QueryMetrics]]) -> tuple[Metrics, Metrics]:
    """Return means over the queries of all markets, and their number."""
    sums: Metrics = {}
    counts: Metrics = {}
    for metrics, count in (result for market in markets for result in market):
        for key, value in metrics.items():
            sums[key] = sums.get(key, 0.0) + value * count
            counts[key] = counts.get(key, 0.0) + count
    return {key: value / counts[key] for key, value in sums.items()}, counts
