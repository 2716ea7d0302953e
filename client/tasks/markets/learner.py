"""The markets task on a client: questions for the scorer or triples for the paper's networks, full ranking (§5.1, §5.5)."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from client.stacked_tensors import Tensors
from client.tasks.learner import shell
from client.tasks.markets.data.counts import bounded_counts, noised
from client.tasks.markets.data.markets import Markets
from client.tasks.markets.networks import embedded, inputs, likeness, triple_loss
from client.tasks.markets.prepare import ReadyMarket, prepare
from client.tasks.markets.triples import TripleSource
from common.arrays import Arrays
from common.models import tensors
from common.tasks.markets.counts import KEYS, add_pairs, includes, no_counts
from common.tasks.markets.metrics import ScoreBlock, ranking_metrics
from common.tasks.markets.models.pair_scorer import FEATURES
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.task import TASK
from common.tasks.markets.vocabulary import MarketCatalogue
from common.tasks.spec import TaskRun
from common.wire.messages import Metrics, TrainRequest

LINES = ("mrr20", "ndcg20")
"""Of the lines' metrics, those that are told."""

SEEN = "seen_"
"""What metrics over queries that other markets know start with, where items are held out and counts shared."""

Counted = tuple[Metrics, int]
"""Metrics, and the queries that they are means over."""

Places = NDArray[np.int64]
Vectors = NDArray[np.float32]


class MarketsLearner:
    """A client's markets in one run; most clients have one.

    Args:
        run: The run.
        dataset: The client's markets.
    """

    task = TASK.name
    rows = 0
    shared: tuple[str, ...] = ()

    def __init__(self, run: TaskRun[MarketsOptions, MarketCatalogue], dataset: Markets) -> None:
        self.options = run.options
        self.module, self.goods = shell(TASK, run), len(run.vocabulary.items)
        self.markets = [prepare(market, run.vocabulary, self.options, run.seed) for market in dataset.units]
        self._paper = run.model == "paper"
        graphs = [market.graph for market in self.markets]
        self._source = TripleSource.of(graphs, [m.vectors for m in self.markets], self.options) if self._paper else None
        self._told = inputs(self.propagated, graphs, self.options) if self._paper else {}
        self.examples = sum(len(graph.edges) for graph in graphs)
        self.size = len(self.propagated) if self._paper else min(self.examples, self.options.fit_most)
        self._asked: Tensors = {}

    def batch(self, request: TrainRequest) -> Tensors:
        """What a network is told of all items; of the scorer, E questions: the numbers of 1 + R candidates each."""
        if self._paper:
            return self._told
        if not self._asked:  # the same in all rounds, since neither graph nor sums change in a run
            numbers = [market.numbers(request.statics) for market in self.markets]
            empty = np.zeros((1, 1 + self.options.rivals, len(FEATURES)), np.float32)  # for a market without pairs
            asked = torch.from_numpy(np.concatenate([*numbers, empty]))
            self._asked = {"numbers": asked, "weights": (torch.arange(len(asked)) < len(asked) - 1).float()}
        return self._asked

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """The triples of each step, steps × B × 3; the scorer answers all its questions in every step."""
        return {"triples": torch.stack([self.triples(generator) for _ in range(steps)])} if self._paper else {}

    def loss(self, params: Tensors, batch: Tensors, noise: Tensors) -> Tensor:
        """A network's loss of its triples, or the mean cross-entropy of the right candidate."""
        if self._paper:
            return triple_loss(self.options, params, embedded(self.module, params, batch, noise["triples"]))
        scores = functional_call(self.module, params, (batch["numbers"],))
        first = torch.zeros(scores.shape[0], dtype=torch.int64)
        losses = cross_entropy(scores, first, reduction="none")
        return (batch["weights"] * losses).sum() / batch["weights"].sum().clamp(min=1)

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Means over the queries of all markets, and their number."""
        scored = [self.scores(model, statics, k) for k in range(len(self.markets))]
        ranked = [_ranked(scores, market, split, statics) for scores, market in zip(scored, self.markets, strict=True)]
        return _pooled(ranked)

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """How well the lines do: the walk, popularity and, where counts are shared, popularity with those."""
        return _pooled([_lines(market, statics, split) for market in self.markets])

    def scores(self, model: Arrays, statics: Arrays, k: int) -> ScoreBlock:
        """Of the k-th market: queries, b places among its items -> scores of all its n items, b × n."""
        market = self.markets[k]
        if not self._paper:
            line = market.line(market.graph, statics)
            return partial(line.weighed, weight=model["scorer.weight"][0])
        first = sum(len(other.vectors) for other in self.markets[:k])
        with torch.no_grad():
            places = torch.arange(first, first + len(market.vectors))
            z = embedded(self.module, tensors(model), self._told, places).numpy()
        return partial(likeness, z, model=model)

    def counts(self) -> Arrays:
        """Users of pairs and of items, over the client's markets."""
        return add_pairs([market.counts for market in self.markets])

    def private_counts(self, noise: float, rng: np.random.Generator) -> Arrays:
        """Its counts with noise on each; a user may be in all its markets and adds a vector of L2 norm 1 at most to each."""
        size = self.goods
        rated = [m.split.validation.ratings for m in self.markets if not m.split.market.listed]
        parts = [bounded_counts(ratings, size, rng, np.float64) for ratings in rated if len(ratings)]
        return noised(add_pairs([*parts, no_counts(size)], exact=np.float64), size, noise * max(len(rated), 1), rng)

    def without_own(self, statics: Arrays, sent: Arrays) -> Arrays:
        """The sums without its own part, if that is in them: an answer that came too late is not."""
        if KEYS not in statics or not sent or not includes(statics, sent):
            return statics
        return add_pairs([statics, sent], [1.0, -1.0])

    @property
    def features(self) -> Tensor:
        """X of all items, n × width."""
        return self._triples.features

    @property
    def propagated(self) -> Tensor:
        """S^m X of all items, n × width."""
        return self._triples.propagated

    @property
    def pairs(self) -> Tensor:
        """Training pairs, E × 2, each once."""
        return self._triples.pairs

    def triples(self, generator: torch.Generator) -> Tensor:
        """Triples (anchor, neighbour, other), B × 3."""
        return self._triples.draw(generator)

    @property
    def _triples(self) -> TripleSource:
        assert self._source is not None, "only the paper's networks train on triples"
        return self._source


def _ranked(scores: Callable[[Places], Vectors], market: ReadyMarket, split: str, statics: Arrays) -> list[Counted]:
    """Over all queries and, where items are held out and counts shared, over those that other markets know."""
    right, masked = market.split.right(split), market.masked(split)
    told = [ranking_metrics(scores, right, masked)]
    if market.options.protocol == "cold" and KEYS in statics:
        seen = (market.elsewhere(statics).degrees > 0).astype(np.float32)
        metrics, count = ranking_metrics(scores, csr_array(right.multiply(seen[:, None])), masked)
        told.append(({f"{SEEN}{key}": value for key, value in metrics.items()}, count))
    return told


def _lines(market: ReadyMarket, statics: Arrays, split: str) -> list[Counted]:
    line = market.line(market.graph, statics)
    lines = {"walk": line.scores, "degree": line.popularity, **({"shared": line.shared} if statics else {})}
    return [
        ({f"{name}_{key}": value for key, value in metrics.items() if key.endswith(LINES)}, count)
        for name, scores in lines.items()
        for metrics, count in _ranked(scores, market, split, statics)
    ]


def _pooled(markets: Sequence[list[Counted]]) -> tuple[Metrics, Metrics]:
    """Means over the queries of all markets, and how many they are the mean of."""
    sums: Metrics = {}
    counts: Metrics = {}
    for metrics, count in (told for market in markets for told in market):
        for key, value in metrics.items():
            sums[key] = sums.get(key, 0.0) + value * count
            counts[key] = counts.get(key, 0.0) + count
    return {key: value / counts[key] for key, value in sums.items()}, counts
