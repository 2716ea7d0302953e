"""Markets learner: prepared markets, objectives, and full ranking (algorithms.md §5.1, §5.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from client.data.dataset import own_rng
from client.tasks.learner import HasModule
from client.tasks.markets.baseline import MarketBaseline, scorer_features
from client.tasks.markets.data.features import item_features
from client.tasks.markets.data.graph import Graph, Sparse, SplitMarket, bounded_counts, graph_counts, split_market
from client.tasks.markets.data.markets import Market, Markets
from client.tasks.markets.networks import TripleSource, embed, network_inputs, triple_loss
from client.training.foresight import derive
from client.training.stacks import Tensors, cross_entropies
from common.arrays import Arrays, Flags, Floats, Floats32, Ints
from common.models import tensors
from common.tasks.markets import blend
from common.tasks.markets.metrics import ScoreBlock, query_metrics, ranking_metrics
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.pairs import (
    DEGREES,
    FEATURES,
    KEYS,
    VALUES,
    OtherMarketCounts,
    add_pairs,
    includes,
    no_counts,
)
from common.tasks.markets.task import TASK
from common.tasks.markets.vocabulary import MarketCatalogue
from common.tasks.spec import TaskRun
from common.wire.messages import Metrics, TrainRequest

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class ReadyMarket:
    """Market in one run.

    Args:
        split: Training, validation and test splits.
        vectors: Features of norm 1 of the n items, n × width.
        has_texts: True if features come from texts; similarity of hashed ids is random.
        counts: Counts of the market, from which its statistics for sums over markets are.
        seed: Seed of the run.
        options: Options of the task.
    """

    split: SplitMarket
    vectors: Floats32
    has_texts: bool
    counts: Arrays
    seed: int
    options: MarketsOptions

    @property
    def graph(self) -> Graph:
        """Training graph."""
        return self.split.graph

    def baseline(self, graph: Graph, statics: Arrays, *, with_ease: bool = False) -> MarketBaseline:
        """Return the baselines of a graph of these items, with sums over other markets if there are some."""
        texts = self.vectors if self.has_texts else self.vectors[:, :0]
        return MarketBaseline.of(graph, texts, self.other_counts(statics), with_ease=with_ease)

    def other_counts(self, statics: Arrays) -> OtherMarketCounts:
        """Return the sums over other markets for these items; zeros without sums."""
        items = self.graph.items
        return OtherMarketCounts.of(statics, items) if KEYS in statics else OtherMarketCounts.zeros(len(items))

    def masked(self, split: str) -> Sparse:
        """Return pairs that cannot be answers in `split`: neighbors in the graph from which it is predicted."""
        return (self.split.test if split == "test" else self.split.validation).graph.weights

    def training_features(self, statics: Arrays) -> Floats32:
        """Return the scorer's training data, E × (1 + R) × F.

        Each of E queries has its right candidate first, then R negatives. One half predicts pairs of `split.fit` on the graph
        without them. The other half treats items as new: items of other markets if there are sums over these, else all
        items. Without sums popularity and texts are their only features.
        """
        fitted, full = self.baseline(self.split.fit.graph, statics), self.baseline(self.graph, statics)
        is_familiar = full.other_counts.degrees > 0 if KEYS in statics else np.ones(len(self.graph.items), bool)
        return self.features_of(fitted, full, np.ones(len(self.graph.items), bool), is_familiar)

    def features_of(
        self, fitted: MarketBaseline, full: MarketBaseline, is_query: Flags, is_familiar: Flags
    ) -> Floats32:
        """Return features of drawn queries and candidates, E × (1 + R) × F, as `training_features` does.

        Args:
            fitted: Baselines of the graph without the pairs of `split.fit`.
            full: Baselines of the training graph.
            is_query: True for items that may be queries of pairs, n.
            is_familiar: True for items that may be queries as if they were new, n.
        """
        fit, rng = self.split.fit, own_rng(self.seed, f"questions of {self.split.market.name}")
        warm = self._draw_queries(fit.right, is_query, fit.graph.weights, rng)
        cold = self._draw_queries(self.graph.weights, is_familiar, None, rng)
        return np.concatenate([scorer_features(fitted, *warm), scorer_features(full, *cold, is_cold=True)])

    def _draw_queries(
        self, right: Sparse, is_query: Flags, graph: Sparse | None, rng: np.random.Generator
    ) -> tuple[Ints, Ints]:
        """Draw at most `fit_most` queries, E, and their candidates, E × (1 + R).

        Items are drawn uniformly, independent of their number of right answers, since metrics are means over queries.

        Args:
            right: Right answers, n × n.
            is_query: True for items that may be queries, n.
            graph: Graph of the queries, within two hops of which half of the negatives lie; None without edges.
            rng: Generator of queries, answers and negatives.
        """
        counts = np.diff(right.indptr)
        eligible = np.flatnonzero(is_query & (counts > 0)).astype(np.int64)
        total = min(int(counts[eligible].sum()), self.options.fit_most)
        query = rng.choice(eligible, total) if total else eligible
        answer = right.indices[right.indptr[query] + rng.integers(counts[query])].astype(np.int64)
        excluded = right.astype(bool) if graph is None else (right + graph).astype(bool)
        reachable = csr_array(excluded.shape) if graph is None else graph @ graph
        size, count = excluded.shape[0], self.options.rivals
        negatives = [
            _draw_negatives(_row(excluded, q), _row(reachable, q), count, size, q, rng) for q in query.tolist()
        ]
        return query, np.column_stack([answer, np.reshape(negatives, (len(query), count)).astype(np.int64)])


def _draw_negatives(
    excluded: Ints, reachable: Ints, count: int, size: int, query: int, rng: np.random.Generator
) -> Ints:
    """Draw items that are not right answers, half of them reachable; the query itself if none is left."""
    is_allowed = np.ones(size, bool)
    is_allowed[np.append(excluded, query)] = False
    near, all_allowed = reachable[is_allowed[reachable]], np.flatnonzero(is_allowed)
    pool = all_allowed if len(all_allowed) else np.array([query])
    half = count // 2
    return np.append(rng.choice(near if len(near) else pool, half), rng.choice(pool, count - half))


def _row(matrix: Sparse, k: int) -> Ints:
    """Return the columns of row k with stored entries."""
    columns: Ints = matrix.indices[matrix.indptr[k] : matrix.indptr[k + 1]].astype(np.int64)
    return columns


def prepare(market: Market, catalogue: MarketCatalogue, options: MarketsOptions, seed: int) -> ReadyMarket:
    """Split a market and compute its item features and counts."""
    split = split_market(market, options, seed)
    items = split.graph.items
    has_texts = options.features != "ids" and any(catalogue.text(item) for item in items.tolist())
    vectors, counts = item_features(catalogue, items, options), _counts(split, catalogue, options, seed)
    return ReadyMarket(split, vectors, has_texts, counts, seed, options)


def _counts(split: SplitMarket, catalogue: MarketCatalogue, options: MarketsOptions, seed: int) -> Arrays:
    """Count training pairs; if contributions are bounded, all ratings except those of held-out users."""
    size, ratings = len(catalogue.items), split.validation.ratings
    if not options.bound_users:
        return graph_counts(split.graph, size)
    if not (split.market.listed or len(ratings)):
        return no_counts(size)
    return bounded_counts(ratings, size, own_rng(seed, f"bounds of {split.market.name}"))


BASELINE_METRICS = ("mrr20", "ndcg20")
"""Suffixes of the metrics that are reported for baselines."""

WALK = "walk"
"""Prefix of the metrics of the random walk."""

SEEN_PREFIX = "seen_"
"""Prefix of metrics over queries that other markets have; for `protocol=cold` with sums over markets."""

Rows = Mapping[str, NDArray[np.floating[Any]]]
"""Metrics of each query."""


CLOSED = "closed"
"""Batch tensor: scores of the candidates by the closed form, to which the scorer adds, E × (1 + R)."""


class MarketsLearner(HasModule):
    """Learner of the markets task: a client's markets in one run; most clients have one."""

    task = TASK.name
    rows = 0
    shared: tuple[str, ...] = ()

    def __init__(self, run: TaskRun[MarketsOptions, MarketCatalogue], dataset: Markets) -> None:
        self.options = run.options
        super().__init__(TASK, run)
        self.markets = [prepare(market, run.vocabulary, self.options, run.seed) for market in dataset.units]
        self._paper = run.model != "default"
        graphs = [market.graph for market in self.markets]
        self._source = TripleSource.of(graphs, [m.vectors for m in self.markets], self.options) if self._paper else None
        self._inputs = self._network_inputs(graphs) if self._paper else {}
        self.examples = sum(len(graph.edges) for graph in graphs)
        self.size = len(self.triple_source.features) if self._paper else min(self.examples, self.options.fit_most)
        self._queries: Tensors = {}
        self._catalogue, self._noised = run.vocabulary, run.privacy.unit != "none"
        self._baselines: dict[tuple[str, int], list[list[Rows]]] = {}
        self._blended: dict[tuple[int, int, bool], MarketBaseline] = {}
        self._drawn: dict[MarketBaseline, Floats32] = {}

    def _network_inputs(self, graphs: Sequence[Graph]) -> Tensors:
        source = self.triple_source
        x = source.features if self.unstacked else source.propagated
        return network_inputs(x, graphs, self.options, has_edges=self.unstacked)

    def batch(self, request: TrainRequest) -> Tensors:
        """Return the network's inputs of all items, or the scorer's E queries with 1 + R candidates each."""
        if self._paper:
            return self._inputs
        if not self._queries:  # constant in a run, like graph and sums
            features = [self._training_features(request.statics, k) for k in range(len(self.markets))]
            width = len(blend.BLENDED if blend.is_solved(request.statics) else FEATURES)
            numbers = torch.empty(sum(map(len, features)) + 1, 1 + self.options.rivals, width)
            numbers[-1] = 0  # for a market without pairs
            for rows in numbers[:-1].split_with_sizes([*map(len, features)]):
                rows.copy_(torch.from_numpy(features.pop(0)))  # the largest arrays of a client are not there twice
            self._queries = {"numbers": numbers, "weights": (torch.arange(len(numbers)) < len(numbers) - 1).float()}
            if blend.is_solved(request.statics):
                self._queries[CLOSED] = numbers @ torch.from_numpy(request.statics[blend.WEIGHTS])
        return self._queries

    def _training_features(self, statics: Arrays, k: int) -> Floats32:
        """Return the scorer's training data of the k-th market; with those of the closed form on top of it."""
        market = self.markets[k]
        if not blend.is_solved(statics):
            return market.training_features(statics)
        fitted, full = self._blend(statics, k, fits=True), self._blend(statics, k)
        return market.features_of(fitted, full, np.ones(len(market.graph.items), bool), _is_familiar(full))

    def step_inputs(self, steps: int, generator: torch.Generator) -> Tensors:
        """Sample the BPR triples of each step, steps × B × 3; the scorer uses all its queries in every step."""
        if not self._paper:
            return {}
        return {"triples": torch.stack([self.triple_source.triples(generator) for _ in range(steps)])}

    def loss(self, params: Tensors, batch: Tensors, inputs: Tensors) -> Tensor:
        """Compute a network's loss of its triples, or the mean cross-entropy of the right candidate."""
        if self._paper:
            return triple_loss(self.options, params, embed(self.module, params, batch, inputs["triples"]))
        scores = torch.func.functional_call(self.module, params, (batch["numbers"],))
        scores = scores + batch[CLOSED] if CLOSED in batch else scores
        first = torch.zeros(scores.shape[0], dtype=torch.int64)
        losses = cross_entropies(scores, first)
        return (batch["weights"] * losses).sum() / batch["weights"].sum().clamp(min=1)

    def evaluate(self, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
        """Return the mean of each metric over the queries of all markets, and their number."""
        return _pool(self._rows(model, statics, split))

    def baselines(self, split: str, statics: Arrays) -> tuple[Metrics, Metrics]:
        """Return metrics of the baselines: walk, popularity and, with sums over markets, both of their sums."""
        return _pool(self._baseline_rows(statics, split))

    def record_values(self, model: Arrays, statics: Arrays, split: str) -> list[Floats]:
        """Return NDCG@20 of the queries of each market."""
        return [_objective(rows[0]) for rows in self._rows(model, statics, split)]

    def baseline_values(self, statics: Arrays, split: str) -> dict[str, list[Floats]]:
        """Return NDCG@20 of the random walk's queries in each market."""
        [walk] = TASK.baselines
        return {walk: [_objective(rows[0], f"{WALK}_") for rows in self._baseline_rows(statics, split)]}

    def _rows(self, model: Arrays, statics: Arrays, split: str) -> list[list[Rows]]:
        """Return the metrics of the queries of each market, all and those that other markets have."""

        def rows(_: Tensor) -> list[list[Rows]]:
            others = self._others(statics)
            return [_evaluate(self.scores(model, statics, k), m, split, others) for k, m in enumerate(self.markets)]

        return derive(self, split, model, statics, rows)

    def _baseline_rows(self, statics: Arrays, split: str) -> list[list[Rows]]:
        """Return the same by each baseline in turn; constant in a run, as the other markets' sums are."""
        key = split, hash(statics[VALUES].tobytes()) if VALUES in statics else bool(statics)
        if key not in self._baselines:
            others = self._others(statics)
            self._baselines[key] = [_baselines(market, others, split) for market in self.markets]
        return self._baselines[key]

    def scores(self, model: Arrays, statics: Arrays, k: int) -> ScoreBlock:
        """Return the scoring function of the k-th market: b query items -> scores of its n items, b × n.

        The networks rank by inner products of Z as the authors' code does, not by Z̃ = P⁻¹(ξ) of Eq 15
        (docs/results/markets.md). The sign of θ₁ in Eq 1 is left out: at large rates it is negative in single rounds.
        """
        market = self.markets[k]
        if blend.is_solved(statics):
            weight = statics[blend.WEIGHTS] + (model["scorer.weight"][0] if model else 0)
            return partial(self._blend(statics, k).weighted_scores, weight=weight)
        if not self._paper:
            baseline = market.baseline(market.graph, statics)
            return partial(baseline.weighted_scores, weight=model["scorer.weight"][0])
        first = sum(len(earlier.vectors) for earlier in self.markets[:k])
        with torch.no_grad():
            places = torch.arange(first, first + len(market.vectors))
            z = embed(self.module, tensors(model), self._inputs, places).numpy()
        return lambda queries: z[queries] @ z.T

    def counts(self) -> Arrays:
        """Return the counts of users of pairs and of items, summed over the client's markets."""
        return add_pairs([market.counts for market in self.markets])

    def statistics(self, solved: Arrays) -> Arrays:
        """Return the sums over this client's markets of what `blend` needs next.

        Raises:
            WireError: What is solved is not of this vocabulary.
        """
        blend.check(solved, self._catalogue, noised=self._noised)
        if blend.ITEMS not in solved:
            return (blend.popular if self._noised else blend.used)(self.counts()[DEGREES])
        if blend.CANDIDATES not in solved:
            return blend.pair_counts(self.counts(), solved[blend.ITEMS])
        total = blend.template(solved)
        for k, market in enumerate(self.markets):
            fitted, full = self._blend(solved, k, fits=True), self._blend(solved, k)
            if blend.GRADIENT not in total:
                self._drawn.clear()
                found = quality(market, fitted, full, solved)
            else:
                if full not in self._drawn:  # all Newton steps have equal queries
                    even = _is_even(market)
                    self._drawn[full] = market.features_of(fitted, full, even, even & _is_familiar(full))
                found = derivatives(self._drawn[full], solved)
            for name, a in found.items():
                total[name] += a
        return total

    def _blend(self, statics: Arrays, k: int, *, fits: bool = False) -> MarketBaseline:
        """Return the features of the k-th market's closed form; `fits`: without the pairs of `split.fit`.

        They are computed once, as the other markets' counts do not change.
        """
        key, market = (k, hash(statics[VALUES].tobytes()), fits), self.markets[k]
        if key not in self._blended:
            graph = market.split.fit.graph if fits else market.graph
            self._blended[key] = market.baseline(graph, self._others(statics), with_ease=True)
        return self._blended[key]

    def _others(self, statics: Arrays) -> Arrays:
        """Return what is solved with the sums of the other clients alone; other statics are theirs already."""
        if blend.ITEMS not in statics or KEYS not in statics:
            return statics
        client_part = blend.restricted(self.counts(), statics[blend.ITEMS])
        has_part = includes(statics, client_part)
        return {**statics, **add_pairs([statics, client_part], [1.0, -1.0])} if has_part else statics

    @property
    def triple_source(self) -> TripleSource:
        """Tensors of all markets of the client, from which triples are drawn."""
        assert self._source is not None, "only the paper's networks train on triples"
        return self._source


def _evaluate(scores: Callable[[Ints], Floats32], market: ReadyMarket, split: str, statics: Arrays) -> list[Rows]:
    """Return metrics of all queries; for cold items with sums, also of items sold elsewhere."""
    right, masked = market.split.right(split), market.masked(split)
    rows: list[Rows] = [query_metrics(scores, right, masked)]
    if market.options.protocol == "cold" and KEYS in statics:
        seen = (market.other_counts(statics).degrees > 0).astype(np.float32)
        found = query_metrics(scores, csr_array(right.multiply(seen[:, None])), masked)
        rows.append({f"{SEEN_PREFIX}{key}": values for key, values in found.items()})
    return rows


def _baselines(market: ReadyMarket, statics: Arrays, split: str) -> list[Rows]:
    baseline = market.baseline(market.graph, statics)
    predictors = {WALK: baseline.scores, "degree": baseline.popularity}
    predictors |= {"shared": baseline.shared} if statics else {}
    return [
        {f"{name}_{key}": values for key, values in rows.items() if key.endswith(BASELINE_METRICS)}
        for name, scores in predictors.items()
        for rows in _evaluate(scores, market, split, statics)
    ]


def _objective(rows: Rows, prefix: str = "") -> Floats:
    return np.asarray(rows.get(f"{prefix}{TASK.objective.metric}", []), np.float64)


def _pool(markets: Sequence[list[Rows]]) -> tuple[Metrics, Metrics]:
    """Return means over the queries of all markets, and their number."""
    sums: Metrics = {}
    counts: Metrics = {}
    for key, values in (pair for market in markets for rows in market for pair in rows.items()):
        sums[key] = sums.get(key, 0.0) + float(values.mean()) * len(values)
        counts[key] = counts.get(key, 0.0) + len(values)
    return {key: value / counts[key] for key, value in sums.items()}, counts


MOST_QUERIES = 500
"""Largest number of items that are ranked for as if they were new, evenly spaced."""


def derivatives(features: Floats32, solved: Arrays) -> Arrays:
    """Return gradient and Hessian of the cross-entropy at the weights of each λ.

    A market of n queries has weight √n, the last column of the gradient. Queries are items at even positions.

    Args:
        features: Features of queries and candidates, E × (1 + R) × F.
        solved: What is solved.
    """
    x = features.astype(np.float64)
    statistics = {name: np.zeros(a.shape) for name, a in blend.template(solved).items()}
    share = 1 / np.sqrt(max(len(x), 1))
    for k, weights in enumerate(solved[blend.CANDIDATES]):
        scores = x @ weights
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        p = odds / odds.sum(axis=1, keepdims=True)
        mean = (p[..., None] * x).sum(axis=1)
        squares = np.tensordot(p[..., None] * x, x, ((0, 1), (0, 1))) - mean.T @ mean
        statistics[blend.GRADIENT][k] = share * np.append((mean - x[:, 0]).sum(axis=0), len(x))
        statistics[blend.HESSIAN][k] = share * squares
    return statistics


def quality(market: ReadyMarket, fitted: MarketBaseline, full: MarketBaseline, solved: Arrays) -> Arrays:
    """Return √n times the mean of MRR@20 and NDCG@20 over n queries by each choice, 2 × (L + 2).

    Queries are items at odd positions: first those with pairs of `split.fit`, then items as if they were new.
    """
    is_query, choices = ~_is_even(market), blend.choices(solved).astype(np.float32)
    warm = _rows(market.split.fit.right, is_query)
    familiar = np.flatnonzero(is_query & _is_familiar(full) & (full.degree > 0))
    is_new = np.zeros(len(is_query), bool)
    is_new[familiar[:: max(1, -(-len(familiar) // MOST_QUERIES))]] = True
    cold = _rows(market.graph.weights, is_new)
    table = np.zeros((2, len(choices)))
    for c, weight in enumerate(choices):
        ranked = partial(fitted.graph_scores, weight=weight), partial(full.cold_scores, weight=weight)
        found = [
            ranking_metrics(ranked[0], warm, fitted.weights),
            ranking_metrics(ranked[1], cold, csr_array(cold.shape)),
        ]
        table[:, c] = [_weigh(metrics, count) for metrics, count in found]
    return {blend.QUALITY: table}


def _weigh(metrics: dict[str, float], queries: int) -> float:
    """Return the weighted mean of MRR@20 and NDCG@20; 0 without queries."""
    return float(np.sqrt(queries) * (metrics["mrr20"] + metrics["ndcg20"]) / 2) if queries else 0.0


def _is_even(market: ReadyMarket) -> Flags:
    return np.asarray(np.arange(len(market.graph.items)) % 2 == 0)


def _is_familiar(full: MarketBaseline) -> Flags:
    """Return True for items of other markets; for all items if no other market has one of them."""
    is_found: Flags = np.asarray(full.other_counts.degrees > 0)
    return is_found if is_found.any() else ~is_found


def _rows(matrix: Sparse, is_row: Flags) -> Sparse:
    """Return a matrix with the other rows emptied."""
    rows = csr_array(diags_array(is_row.astype(np.float32)) @ matrix)
    rows.eliminate_zeros()
    return rows
